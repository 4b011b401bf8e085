#include "sim/network/overlap.h"

#include <algorithm>
#include <cmath>

namespace ridgeline {
namespace {

// Fitted on the rows to fit of measurements/h200/parallel/overlap.jsonl: collectives on two and four H200 beside seven
// kernels.
constexpr double kShared = 1.2;        // a collective beside any kernel: L2 and clock are shared
constexpr double kQueued = 3.5;        // times the DRAM's excess demand: few thread blocks wait for an answer each
constexpr double kFewerWaiting = 0.3;  // of a kernel that waits for memory, where the DRAM is idle
constexpr double kHidden = 0.25;       // of a kernel: a collective that runs so much longer still ends with it
constexpr double kFewWaves = 64.0;     // up to here a wave more is seen
constexpr int kRounds = 4;             // side_by_side settles in two

double usable(const Gpu& gpu) {
  return gpu.dram.bandwidth.value() * 0.5 * (gpu.dram.read_efficiency + gpu.dram.write_efficiency);
}
/// Share of the DRAM's time.
double demand(const Gpu& gpu, Bytes bytes, Seconds time) {
  return time.value() > 0.0 ? std::min(1.0, bytes.value() / time.value() / usable(gpu)) : 0.0;
}

/// Of a kernel that computes: waves of thread blocks with the collective's SMs missing, over those without.
double more_waves(const Gpu& gpu, double sms, const KernelBesides& kernel, double share) {
  const double at_once = gpu.sm.count * std::max(1.0, kernel.blocks_per_sm);
  const double waves = std::max(1.0, kernel.blocks) / at_once;
  if (waves > kFewWaves) return 1.0 / (1.0 - share * sms / gpu.sm.count);
  const double lost = sms * std::max(1.0, kernel.blocks_per_sm) * std::max(1.0, share * std::ceil(waves));
  return std::ceil(waves + lost / at_once - 1e-9) / std::ceil(waves - 1e-9);
}

}  // namespace

double compute_slowdown(const Gpu& gpu, const CollectiveTime& collective, const KernelBesides& kernel, double share) {
  share = std::clamp(share, 0.0, 1.0);
  if (share == 0.0 || collective.channels == 0) return 1.0;
  const double sms = std::min(1.0 * collective.channels, gpu.sm.count - 1.0);
  const double idle = 1.0 - demand(gpu, kernel.dram, kernel.time);
  const double whole = gpu.sm.count / (gpu.sm.count - sms) * (1.0 + kFewerWaiting * idle);
  const double waiting = 1.0 / (1.0 - share * (1.0 - 1.0 / whole));
  const double memory = std::clamp(kernel.memory_bound, 0.0, 1.0);
  return std::max(1.0, memory * waiting + (1.0 - memory) * more_waves(gpu, sms, kernel, share));
}

double collective_slowdown(const Gpu& gpu, const CollectiveTime& collective, const KernelBesides& kernel) {
  if (collective.channels == 0) return 1.0;
  const double excess = demand(gpu, kernel.dram, kernel.time) + demand(gpu, collective.dram, collective.time) - 1.0;
  return std::max(kShared, 1.0 + kQueued * excess);
}

Seconds wait_for_room(const Gpu& gpu, const KernelBesides& kernel, Seconds elapsed) {
  const double at_once = gpu.sm.count * std::max(1.0, kernel.blocks_per_sm);
  if (kernel.blocks < at_once) return Seconds{0.0};  // it never fills the GPU
  const double waves = std::ceil(std::max(1.0, kernel.blocks) / at_once - 1e-9);
  // The last wave is placed when the one before it ends; blocks that all fit leave room only where they end.
  const Seconds placed = waves > 1.0 ? kernel.time * ((waves - 1.0) / waves) : kernel.time;
  return std::max(Seconds{0.0}, placed - elapsed);
}

SideBySide side_by_side(const Gpu& gpu, const CollectiveTime& collective, const KernelBesides& kernel) {
  const double runs = collective.time.value() * collective_slowdown(gpu, collective, kernel);
  double slowed = kernel.time.value() * compute_slowdown(gpu, collective, kernel), kernels = 1.0;
  for (int i = 0; i < kRounds; ++i) {
    kernels = std::max(1.0, std::ceil(runs / slowed - kHidden));  // that pass from one collective to the next
    slowed = kernel.time.value() * compute_slowdown(gpu, collective, kernel, runs / (kernels * slowed));
  }
  return {Seconds{slowed}, Seconds{std::max(kernels * slowed, runs)}};
}

}  // namespace ridgeline

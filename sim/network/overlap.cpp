#include "sim/network/overlap.h"

#include <algorithm>
#include <cmath>

#include "sim/network/tables/overlap.inc"

namespace ridgeline {
namespace {

constexpr double kFewWaves = 64.0;  // up to here a wave more is seen
constexpr int kRounds = 4;          // side_by_side settles in two

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

const OverlapConstants& overlap_constants() { return overlap_table::nvlink; }

double compute_slowdown(const Gpu& gpu, const CollectiveTime& collective, const KernelBesides& kernel, double share,
                        const OverlapConstants& constants) {
  share = std::clamp(share, 0.0, 1.0);
  if (share == 0.0 || collective.channels == 0) return 1.0;
  const double sms = std::min(1.0 * collective.channels, gpu.sm.count - 1.0);
  const double idle = 1.0 - demand(gpu, kernel.dram, kernel.time);
  const double whole = gpu.sm.count / (gpu.sm.count - sms) * (1.0 + constants.fewer_waiting * idle);
  const double waiting = 1.0 / (1.0 - share * (1.0 - 1.0 / whole));
  const double memory = std::clamp(kernel.memory_bound, 0.0, 1.0);
  return std::max(1.0, memory * waiting + (1.0 - memory) * more_waves(gpu, sms, kernel, share));
}

double collective_slowdown(const Gpu& gpu, const CollectiveTime& collective, const KernelBesides& kernel,
                           const OverlapConstants& constants) {
  if (collective.channels == 0) return 1.0;
  const double excess = demand(gpu, kernel.dram, kernel.time) + demand(gpu, collective.dram, collective.time) - 1.0;
  return std::max(constants.shared, 1.0 + constants.queued * excess);
}

Seconds wait_for_room(const Gpu& gpu, const KernelBesides& kernel, Seconds elapsed) {
  const double at_once = gpu.sm.count * std::max(1.0, kernel.blocks_per_sm);
  if (kernel.blocks < at_once) return Seconds{0.0};  // it never fills the GPU
  const double waves = std::ceil(std::max(1.0, kernel.blocks) / at_once - 1e-9);
  // The last wave is placed when the one before it ends; blocks that all fit leave room only where they end.
  const Seconds placed = waves > 1.0 ? kernel.time * ((waves - 1.0) / waves) : kernel.time;
  return std::max(Seconds{0.0}, placed - elapsed);
}

SideBySide side_by_side(const Gpu& gpu, const CollectiveTime& collective, const KernelBesides& kernel,
                        const OverlapConstants& constants) {
  const double runs = collective.time.value() * collective_slowdown(gpu, collective, kernel, constants);
  double slowed = kernel.time.value() * compute_slowdown(gpu, collective, kernel, 1.0, constants), kernels = 1.0;
  for (int i = 0; i < kRounds; ++i) {
    kernels = std::max(1.0, std::ceil(runs / slowed - constants.hidden));  // that pass from one collective to the next
    slowed = kernel.time.value() * compute_slowdown(gpu, collective, kernel, runs / (kernels * slowed), constants);
  }
  return {Seconds{slowed}, Seconds{std::max(kernels * slowed, runs)}};
}

}  // namespace ridgeline

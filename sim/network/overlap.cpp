#include "sim/network/overlap.h"

#include <algorithm>
#include <cmath>

namespace ridgeline {
namespace {

constexpr double kStolen = 1.06;  // what shared L2 and clocks cost besides

double waves(double blocks, double at_once) { return std::ceil(std::max(1.0, blocks) / std::max(1.0, at_once)); }

double dram_demand(const Gpu& gpu, Bytes bytes, Seconds time) {
  return time.value() > 0 ? ratio(bytes / time, gpu.dram.bandwidth * gpu.dram.read_efficiency) : 0.0;
}

}  // namespace

double compute_slowdown(const Gpu& gpu, const CollectiveTime& collective, const KernelBesides& kernel) {
  const double left = std::max(1.0, 1.0 * gpu.sm.count - collective.channels);
  const double few = gpu.sm.count / left;
  const double steps =
      waves(kernel.blocks, left * kernel.blocks_per_sm) / waves(kernel.blocks, gpu.sm.count * kernel.blocks_per_sm);
  const double by_sms = 1.0 + kernel.sm_share * (std::min(few, std::max(1.0, steps)) - 1.0);
  const double demand = dram_demand(gpu, kernel.dram, kernel.time) + dram_demand(gpu, collective.dram, collective.time);
  return std::max({1.0, by_sms, demand}) * kStolen;
}

double collective_slowdown(const Gpu& gpu, const CollectiveTime& collective, const KernelBesides& kernel) {
  const double demand = dram_demand(gpu, kernel.dram, kernel.time) + dram_demand(gpu, collective.dram, collective.time);
  const double block_waves = waves(kernel.blocks, gpu.sm.count * kernel.blocks_per_sm);
  const double wait = kernel.time.value() / block_waves / std::max(1e-9, collective.time.value());
  return std::max(1.0, demand) + wait;
}

}  // namespace ridgeline

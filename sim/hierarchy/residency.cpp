#include "sim/hierarchy/residency.h"

#include <algorithm>
#include <cmath>

#include "sim/occupancy/occupancy.h"

namespace ridgeline {
namespace {

/// From the exit of a block to the first instruction of the next one in its place: from the achieved occupancy of
/// memory-bound kernels of many short blocks on an H200 (0.2 to 0.55 us).
constexpr double kReplacement = 3.0e-7;
/// Warps of a block of a persistent product that end at once: three of the four that load tiles.
constexpr int kIdleLoaders = 3;

struct Placement {
  double warps = 1;     ///< of a block, that stay
  double resident = 1;  ///< blocks an SM can hold
  double blocks = 1;    ///< that work
  double per_sm = 1;    ///< blocks on the fullest SM, over the whole kernel
};

Placement placement_of(const KernelLaunch& launch, const Gpu& gpu) {
  const Occupancy occupancy = occupancy_of(gpu.sm, launch);
  Placement p;
  p.warps = occupancy.warps_per_block;
  p.resident = std::max(1, occupancy.blocks);
  p.blocks = std::max(1.0, launch.blocks());
  if (const auto* gemm = std::get_if<GemmWork>(&launch.work); gemm && !gemm->reduces_splits) {
    p.resident = std::max(1, gemm->blocks_per_sm);
    if (gemm->family == GemmWork::Family::wgmma) p.warps = std::max(1.0, p.warps - kIdleLoaders);
  } else if (const auto* attention = std::get_if<AttentionWork>(&launch.work)) {
    p.resident = std::max(1, attention->blocks_per_sm);
  } else if (const auto* stream = std::get_if<StreamWork>(&launch.work); stream && stream->active_blocks > 0.0) {
    p.blocks = std::ceil(stream->active_blocks);
  }
  p.per_sm = std::ceil(p.blocks / gpu.sm.count);
  return p;
}

/// Mean blocks on an SM that has any, over the `busy` seconds in which it has.
double mean_resident(const Placement& p, double busy, const Gpu& gpu) {
  const double together = std::min(p.resident, p.per_sm);
  const double rate = gpu.launch.blocks_per_second > 0.0 ? gpu.launch.blocks_per_second / gpu.sm.count : 1e12;
  const double filling = std::min(0.8 * busy, (together - 1.0) / rate);  // first to last block of an SM's first set
  if (p.per_sm <= p.resident) return together * (1.0 - filling / busy);
  const double turns = p.blocks / gpu.sm.count / p.resident;  // blocks one slot runs
  const double turn = busy / turns;
  const double empty = std::min(0.6 * turn, kReplacement);
  return together * (1.0 - empty / turn) * (1.0 - 0.5 * filling / busy);
}

}  // namespace

std::shared_ptr<const KernelProfile> profile_of(const KernelLaunch& launch, const KernelTraffic& traffic,
                                                std::span<const double> ends, const KernelTime& time, const Gpu& gpu) {
  auto profile = std::make_shared<KernelProfile>();
  const TrafficStep total = traffic.total();
  const double seconds = std::max(time.time.value(), 1e-12);
  KernelProfile& out = *profile;
  out.l2_read_bytes = total.l2_read;
  out.l2_write_bytes = total.l2_write;
  out.l2_hit_rate = total.lookups > 0.0 ? total.hits / total.lookups : 0.0;
  out.l1_read_bytes = traffic.l1_read;
  out.l1_hit_rate = traffic.l1_read > 0.0 ? traffic.l1_hit / traffic.l1_read : 0.0;
  out.dram_read_bytes = total.dram_read;
  out.dram_write_bytes = total.dram_write;
  out.dram_bandwidth = (total.dram_read + total.dram_write) / seconds;
  out.dram_share = out.dram_bandwidth / gpu.dram.bandwidth.value();
  out.l2_bandwidth = (total.l2_read + total.l2_write) / seconds;
  out.l2_share = out.l2_bandwidth / gpu.l2.read_bandwidth.value();

  const Placement p = placement_of(launch, gpu);
  const double busy = std::max(0.2 * seconds, seconds - gpu.launch.kernel_fixed.value());
  const double mean = std::min(mean_resident(p, busy, gpu), p.resident);
  out.theoretical_occupancy =
      std::min(1.0, p.resident * occupancy_of(gpu.sm, launch).warps_per_block / gpu.sm.max_warps);
  out.achieved_occupancy = std::min(1.0, mean * p.warps / gpu.sm.max_warps);
  out.waves = p.blocks / (gpu.sm.count * p.resident);
  out.pipe_active = time.math_utilization;
  return profile;
}

}  // namespace ridgeline

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

/// Most points of a kernel's timeline.
constexpr std::size_t kMostSamples = 100;

/// Steps as samples of about equal length; the last cohort may leave SMs without a block.
std::vector<ProfileSample> samples_of(const KernelTraffic& traffic, std::span<const double> ends, double per_active_sm,
                                      double last_active) {
  std::vector<ProfileSample> samples;
  if (ends.empty()) return samples;
  const double least = ends.back() / static_cast<double>(kMostSamples);
  double begin = 0.0;
  TrafficStep sum;
  for (std::size_t i = 0; i < traffic.steps.size(); ++i) {
    sum += traffic.steps[i];
    const double length = ends[i] - begin;
    const bool cohort_ends = i + 1 == traffic.steps.size() || traffic.steps[i + 1].cohort + 1 == traffic.cohorts;
    if (i + 1 < traffic.steps.size() && length < least && !(cohort_ends && length > 0.2 * least)) continue;
    if (length <= 0.0) continue;
    ProfileSample sample;
    sample.end_s = ends[i];
    sample.active_sms = traffic.steps[i].cohort + 1 >= traffic.cohorts ? last_active : 1.0;
    sample.occupancy = per_active_sm * sample.active_sms;
    sample.l2_hit_rate = sum.lookups > 0.0 ? sum.hits / sum.lookups : 0.0;
    sample.dram_read = sum.dram_read / length;
    sample.dram_write = sum.dram_write / length;
    samples.push_back(sample);
    begin = ends[i];
    sum = {};
  }
  return samples;
}

}  // namespace

std::string_view name_of(Stall stall) {
  switch (stall) {
    case Stall::long_scoreboard: return "long_scoreboard";
    case Stall::math_pipe_throttle: return "math_pipe_throttle";
    case Stall::mio_throttle: return "mio_throttle";
    case Stall::barrier: return "barrier";
    case Stall::drain:
    case Stall::count_: break;
  }
  return "drain";
}

std::shared_ptr<const KernelProfile> profile_of(const KernelLaunch& launch, const KernelTraffic& traffic,
                                                std::span<const double> ends, const KernelTime& time,
                                                const std::array<double, kStalls>& waiting, const Gpu& gpu) {
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
  const double at_once = gpu.sm.count * p.resident;
  const double rest = p.blocks - std::floor((p.blocks - 1.0) / at_once) * at_once;
  const double last_active = std::min(1.0, rest / gpu.sm.count);
  out.samples = samples_of(traffic, ends, out.achieved_occupancy, last_active);
  double before_tail = 0.0;
  for (const ProfileSample& sample : out.samples)
    if (sample.active_sms >= 1.0) before_tail = sample.end_s;
  out.tail_share = std::clamp(1.0 - before_tail / seconds, 0.0, 1.0);
  double all = 0.0;
  for (const double part : waiting) all += part;
  for (std::size_t i = 0; i < kStalls; ++i) out.stalls[i] = all > 0.0 ? waiting[i] / all : 0.0;
  return profile;
}

}  // namespace ridgeline

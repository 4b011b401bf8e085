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
  } else if (const auto* stream = std::get_if<MemoryBoundWork>(&launch.work); stream && stream->active_blocks > 0.0) {
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
constexpr Ticks kMostSamples = 100;
/// Nothing shorter is of interest in a kernel.
constexpr double kShortestSample = 0.5e-6;

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

KernelCourse course_of(const KernelLaunch& launch, const KernelTraffic& traffic, std::span<const double> ends,
                       const Gpu& gpu) {
  KernelCourse course;
  if (ends.empty()) return course;
  const Placement p = placement_of(launch, gpu);
  const double at_once = gpu.sm.count * p.resident;
  const double rest = p.blocks - std::floor((p.blocks - 1.0) / at_once) * at_once;
  const double last_active = std::min(1.0, rest / gpu.sm.count);
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
    sample.occupancy = sample.active_sms;
    if (sample.active_sms >= 1.0) course.tail_share = 1.0 - ends[i] / ends.back();
    sample.l2_hit_rate = sum.lookups > 0.0 ? sum.hits / sum.lookups : 0.0;
    sample.dram_read = sum.dram_read / length;
    sample.dram_write = sum.dram_write / length;
    course.samples.push_back(sample);
    begin = ends[i];
    sum = {};
  }
  if (last_active >= 1.0) course.tail_share = 0.0;
  return course;
}

KernelCourse course_of(const GridPlan& plan, const GridRun& run, const KernelTraffic& traffic, Ticks fill,
                       double tick) {
  KernelCourse course;
  const double seconds = static_cast<double>(run.end) * tick;
  const auto samples = std::clamp<Ticks>(static_cast<Ticks>(seconds / kShortestSample), 4, kMostSamples);
  const Ticks width = std::max<Ticks>(1, run.end / samples + 1);
  const auto count = static_cast<std::size_t>((run.end + width - 1) / width);
  std::vector<TrafficStep> moved(count);
  std::vector<double> blocks(count), sms(count);
  /// Calls with each interval that [begin, end) meets and the ticks of it there.
  const auto spread = [&](Ticks begin, Ticks end, auto&& add) {
    if (begin == plan.start) begin -= std::min(begin, fill);
    for (Ticks at = begin; at < end;) {
      const Ticks next = std::min(end, (at / width + 1) * width);
      add(static_cast<std::size_t>(at / width), static_cast<double>(next - at),
          static_cast<double>(next - at) / static_cast<double>(end - begin));
      at = next;
    }
  };
  std::vector<std::size_t> first_step;
  for (std::size_t at = 0; const auto& phases : plan.cohorts) {
    first_step.push_back(at);
    at += phases.size();
  }
  for (const GridRun::Ran& ran : run.ran) {
    const auto cohort = static_cast<std::size_t>(ran.cohort);
    const std::int64_t in_cohort = std::min(plan.cohort_blocks, plan.blocks - ran.cohort * plan.cohort_blocks);
    const TrafficStep& step = traffic.steps[first_step[cohort] + static_cast<std::size_t>(ran.phase)];
    const double part = static_cast<double>(ran.sms) / static_cast<double>(std::max<std::int64_t>(1, in_cohort));
    spread(ran.begin, ran.end, [&](std::size_t i, double ticks, double share) {
      blocks[i] += ticks * ran.sms;
      moved[i].dram_read += step.dram_read * part * share;
      moved[i].dram_write += step.dram_write * part * share;
      moved[i].lookups += step.lookups * part * share;
      moved[i].hits += step.hits * part * share;
    });
  }
  for (const GridRun::Active& active : run.active)
    spread(active.begin, active.end, [&](std::size_t i, double ticks, double) { sms[i] += ticks * active.sms; });
  for (std::size_t i = 0; i < count; ++i) {
    const Ticks end = std::min(run.end, static_cast<Ticks>(i + 1) * width);
    const auto length = static_cast<double>(end - static_cast<Ticks>(i) * width);
    const double sampled = length * tick;
    ProfileSample& sample = course.samples.emplace_back();
    sample.end_s = static_cast<double>(end) * tick;
    sample.active_sms = std::min(1.0, sms[i] / length / plan.sms);
    sample.occupancy = blocks[i] / length / plan.sms / plan.slots;
    sample.l2_hit_rate = moved[i].lookups > 0.0 ? moved[i].hits / moved[i].lookups : 0.0;
    sample.dram_read = moved[i].dram_read / sampled;
    sample.dram_write = moved[i].dram_write / sampled;
  }
  // The tail begins when the first SM runs out of blocks, or with the kernel's first block if some never have one.
  std::int64_t busy = 0;
  Ticks tail = run.end;
  for (const GridRun::Active& active : run.active) busy += active.begin == plan.start ? active.sms : 0;
  for (const GridRun::Active& active : run.active) tail = std::min(tail, active.end);
  course.tail_share = 1.0 - static_cast<double>(busy < plan.sms ? plan.start : tail) / static_cast<double>(run.end);
  return course;
}

std::shared_ptr<const KernelProfile> profile_of(const KernelLaunch& launch, const KernelTraffic& traffic,
                                                KernelCourse course, const KernelTime& time,
                                                const std::array<double, kStalls>& waiting, const Gpu& gpu) {
  auto profile = std::make_shared<KernelProfile>();
  const TrafficStep total = traffic.total();
  const double seconds = std::max(time.time.value(), 1e-12);
  KernelProfile& out = *profile;
  out.operand_hits = traffic.hit_shares;
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
  out.samples = std::move(course.samples);
  // The curve is of blocks; its mean over the SMs at work is what the counters would show.
  double held = 0.0, at_work = 0.0, begin = 0.0;
  for (const ProfileSample& sample : out.samples) {
    held += sample.occupancy * (sample.end_s - begin);
    at_work += sample.active_sms * (sample.end_s - begin);
    begin = sample.end_s;
  }
  const double scale = held > 0.0 ? out.achieved_occupancy * at_work / held : 0.0;
  for (ProfileSample& sample : out.samples) sample.occupancy = std::min(1.0, sample.occupancy * scale);
  out.tail_share = std::clamp(course.tail_share, 0.0, 1.0);
  double all = 0.0;
  for (const double part : waiting) all += part;
  for (std::size_t i = 0; i < kStalls; ++i) out.stalls[i] = all > 0.0 ? waiting[i] / all : 0.0;
  return profile;
}

}  // namespace ridgeline

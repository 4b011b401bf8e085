#include "sim/hierarchy/grid_plan.h"

#include <cmath>

#include "sim/hierarchy/dram_queue.h"
#include "sim/units/ceil_div.h"

namespace ridgeline {
namespace {

double fourth(double x) { return x * x * x * x; }

/// Cohorts' phases from the traffic's steps. A granule comes as a whole, but blocks load evenly: a cohort's bytes are
/// spread over its phases. Blocks wait for what they read and, as the laws have it, for what they write: a line of the
/// L2 is written when another has left. The queue is as slow as the law's bandwidth for this kernel's pattern.
void move_bytes(GridPlan& plan, const KernelParts& parts, const KernelTraffic& traffic, const Gpu& gpu) {
  TrafficStep total;
  for (std::size_t i = 0; i < traffic.steps.size();) {
    std::size_t last = i;
    TrafficStep cohort;
    for (; last < traffic.steps.size() && traffic.steps[last].cohort == traffic.steps[i].cohort; ++last)
      cohort += traffic.steps[last];
    total += cohort;
    const auto row = static_cast<std::int64_t>(plan.cohorts.size());
    const auto blocks = static_cast<double>(
        std::max<std::int64_t>(1, std::min(plan.cohort_blocks, plan.blocks - row * plan.cohort_blocks)));
    auto& phases = plan.cohorts.emplace_back();
    for (; i < last; ++i) {
      const double share =
          cohort.work > 0.0 ? traffic.steps[i].work / cohort.work : 1.0 / static_cast<double>(last - i);
      phases.push_back(
          {share, std::llround(cohort.dram_read * share / blocks), std::llround(cohort.l2_write * share / blocks)});
    }
  }
  const double plain = DramQueue::seconds(gpu.dram, total.dram_read, total.l2_write);
  plan.stretch = plain > 0.0 ? parts.memory / plain : 1.0;
}

}  // namespace

GridPlan plan_of(const GemmWork& work, const GemmTime& law, const KernelParts& parts, const KernelTraffic& traffic,
                 const Gpu& gpu) {
  GridPlan plan;
  const bool persistent = work.family == GemmWork::Family::wgmma;
  plan.sms = gpu.sm.count;
  plan.slots = persistent ? 1 : std::max(1, work.blocks_per_sm);
  plan.cohort_blocks = std::int64_t{plan.sms} * plan.slots;
  const std::int64_t tiles = ceil_div(work.m, work.tile_m) * ceil_div(work.n, work.tile_n) * work.batch * work.split_k;
  plan.blocks = work.stream_k && persistent ? traffic.cohorts * plan.cohort_blocks : tiles;
  plan.start = ticks_of(parts.fixed + parts.fill);
  // Sets of blocks on the fullest SM, as the law has them; its time is theirs together.
  const std::int64_t rounds = ceil_div(plan.blocks, std::int64_t{plan.sms});
  const auto resident = std::min<std::int64_t>(plan.slots, rounds);
  const std::int64_t sets = rounds / resident, rest = rounds % resident;
  const double one = std::max(law.math, 1e-3 * law.latency);
  const auto shared = [&](std::int64_t blocks) {
    return std::sqrt(
        std::sqrt(fourth(static_cast<double>(blocks) * one) + fourth(law.latency * static_cast<double>(resident))));
  };
  const double all = static_cast<double>(sets) + (rest > 0 ? shared(rest) / shared(resident) : 0.0);
  for (std::int64_t blocks = 1; blocks <= plan.slots; ++blocks)
    plan.alone.push_back(ticks_of(law.compute / all * shared(std::min(blocks, resident)) / shared(resident)));
  move_bytes(plan, parts, traffic, gpu);
  return plan;
}

GridPlan plan_of(const AttentionWork& work, const AttentionBlocks& blocks, double clock, const KernelParts& parts,
                 const KernelTraffic& traffic, const Gpu& gpu) {
  GridPlan plan;
  plan.sms = gpu.sm.count;
  plan.slots = blocks.resident;
  plan.cohort_blocks = std::int64_t{plan.sms} * std::max(1, work.blocks_per_sm);
  plan.blocks = std::llround(blocks.count);
  plan.start = ticks_of(parts.fixed + parts.fill);
  const double longest = *std::max_element(blocks.tiles.begin(), blocks.tiles.end());
  for (int together = 1; together <= plan.slots; ++together)
    plan.alone.push_back(ticks_of(blocks.cycles(longest, together) / clock));
  if (blocks.tiles.size() > 1)
    for (const double tiles : blocks.tiles)
      plan.lengths.push_back(blocks.cycles(tiles, plan.slots) / blocks.cycles(longest, plan.slots));
  move_bytes(plan, parts, traffic, gpu);
  return plan;
}

}  // namespace ridgeline

#include "sim/hierarchy/grid_plan.h"

#include <cmath>
#include <cstdlib>

#include "sim/units/ceil_div.h"

namespace ridgeline {
namespace {

double fourth(double x) { return x * x * x * x; }

/// Cohorts' phases from the traffic's steps; what the fill has loaded is not loaded again. The queue is as slow as the
/// law's achieved bandwidth for this kernel's pattern.
void move_bytes(GridPlan& plan, const KernelParts& parts, const KernelTraffic& traffic, const Gpu& gpu) {
  plan.cohorts.clear();
  double filling = 0.0;
  const TrafficStep total = traffic.total();
  const double seconds = parts.memory;
  const double law_total = parts.memory + parts.fill;
  if (law_total > 0.0) filling = total.dram_read * std::min(1.0, parts.fill / law_total);
  double read = 0.0, written = 0.0;
  for (std::size_t i = 0; i < traffic.steps.size();) {
    std::size_t last = i;
    TrafficStep cohort;
    for (; last < traffic.steps.size() && traffic.steps[last].cohort == traffic.steps[i].cohort; ++last)
      cohort += traffic.steps[last];
    const auto row = static_cast<std::int64_t>(plan.cohorts.size());
    const double blocks = static_cast<double>(
        std::max<std::int64_t>(1, std::min(plan.cohort_blocks, plan.blocks - row * plan.cohort_blocks)));
    const double loaded = std::min(filling, cohort.dram_read);
    filling -= loaded;
    const double reads = cohort.dram_read - loaded, writes = std::getenv("DW") ? cohort.dram_write : cohort.l2_write;
    read += reads;
    written += writes;
    auto& phases = plan.cohorts.emplace_back();
    for (; i < last; ++i) {
      const double share =
          cohort.work > 0.0 ? traffic.steps[i].work / cohort.work : 1.0 / static_cast<double>(last - i);
      phases.push_back({share, std::llround(reads * share / blocks), std::llround(writes * share / blocks)});
    }
  }
  const double peak = gpu.dram.bandwidth.value();
  const double plain = read / (peak * gpu.dram.read_efficiency) + written / (peak * gpu.dram.write_efficiency);
  plan.stretch = plain > 0.0 ? seconds / plain : 1.0;
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
    return std::sqrt(std::sqrt(fourth(static_cast<double>(blocks) * one) + fourth(law.latency * static_cast<double>(resident))));
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

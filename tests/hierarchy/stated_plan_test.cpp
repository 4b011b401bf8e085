// A launch as a grid of blocks with phases, against docs/model/simulated-hierarchy.md ("Events"): how many blocks of
// how many cohorts, their own times by how many share an SM, their bytes, over random laws and traffic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/hierarchy/grid_plan.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;

KernelTraffic drawn_traffic(Draws& draws, int cohorts) {
  KernelTraffic traffic;
  traffic.cohorts = cohorts;
  const std::size_t phases = 1 + draws.index(5);
  for (int c = 0; c < cohorts; ++c)
    for (std::size_t k = 0; k < phases; ++k) {
      TrafficStep step;
      step.cohort = c;
      step.work = draws.between(0.1, 1.0);
      step.dram_read = draws.between(1e5, 1e8), step.l2_write = draws.between(1e5, 1e8);
      traffic.steps.push_back(step);
    }
  return traffic;
}

/// Phases do the cohort's work in its parts, each block its share of the bytes; the queue is as slow as the law's
/// memory.
void expect_phases(const GridPlan& plan, const KernelTraffic& traffic, double memory, const DramSpec& dram) {
  ASSERT_EQ(plan.cohorts.size(), static_cast<std::size_t>(traffic.cohorts));
  const std::size_t phases = traffic.steps.size() / plan.cohorts.size();
  double read = 0.0, written = 0.0;
  for (std::size_t c = 0; c < plan.cohorts.size(); ++c) {
    ASSERT_EQ(plan.cohorts[c].size(), phases);
    TrafficStep all;
    for (std::size_t k = 0; k < phases; ++k) all += traffic.steps[c * phases + k];
    const double blocks = static_cast<double>(std::max<std::int64_t>(
        1, std::min(plan.cohort_blocks, plan.blocks - static_cast<std::int64_t>(c) * plan.cohort_blocks)));
    for (std::size_t k = 0; k < phases; ++k) {
      const double share = traffic.steps[c * phases + k].work / all.work;
      EXPECT_NEAR(plan.cohorts[c][k].work, share, 1e-12);
      EXPECT_NEAR(static_cast<double>(plan.cohorts[c][k].read), all.dram_read * share / blocks, 1.0);
      EXPECT_NEAR(static_cast<double>(plan.cohorts[c][k].write), all.l2_write * share / blocks, 1.0);
    }
    read += all.dram_read, written += all.l2_write;
  }
  const double plain =
      (read / dram.read_efficiency + written / dram.write_efficiency + 2.0 * dram.turnaround * written) /
      dram.bandwidth.value();
  EXPECT_NEAR(plan.stretch, memory / plain, 1e-9 * plan.stretch);
}

TEST(StatedPlan, a_products_blocks_take_the_laws_compute_in_sets) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 500 && !HasFailure(); ++i) {
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i));
    Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
    gpu.sm.count = static_cast<int>(draws.between(2, 150));
    GemmWork work;
    const bool persistent = draws.index(2) == 0;
    work.family = persistent ? GemmWork::Family::wgmma : GemmWork::Family::mma_sync;
    work.m = std::llround(draws.between(10, 5000)), work.n = std::llround(draws.between(10, 5000)), work.k = 512;
    work.batch = 1 + static_cast<std::int64_t>(draws.index(3)), work.split_k = 1 + static_cast<int>(draws.index(3));
    work.tile_m = 64, work.tile_n = 128;
    work.blocks_per_sm = 1 + static_cast<int>(draws.index(4));
    work.stream_k = draws.index(4) == 0;
    GemmTime law;
    law.compute = draws.between(1e-6, 1e-3), law.math = law.compute * draws.share(),
    law.latency = law.compute * draws.share();
    const KernelParts parts{draws.between(1e-6, 5e-6), draws.between(1e-7, 5e-6), draws.between(1e-6, 1e-3)};
    const int slots = persistent ? 1 : work.blocks_per_sm;
    const std::int64_t at_once = std::int64_t{gpu.sm.count} * slots;
    const std::int64_t tiles = (work.m + 63) / 64 * ((work.n + 127) / 128) * work.batch * work.split_k;
    const int cohorts = static_cast<int>((tiles + at_once - 1) / at_once);
    const KernelTraffic traffic = drawn_traffic(draws, cohorts);
    const GridPlan plan = plan_of(work, law, parts, traffic, gpu);
    EXPECT_EQ(plan.sms, gpu.sm.count);
    EXPECT_EQ(plan.slots, slots);
    EXPECT_EQ(plan.cohort_blocks, at_once);
    // Shared k-steps keep every SM at work.
    EXPECT_EQ(plan.blocks, work.stream_k && persistent ? cohorts * at_once : tiles);
    EXPECT_EQ(plan.start, ticks_of(parts.fixed + parts.fill));
    expect_phases(plan, traffic, parts.memory, gpu.dram);
    // The fullest SM has so many blocks, in sets of as many as fit; a set of b takes its step b times or its latency.
    const double rounds = std::ceil(static_cast<double>(plan.blocks) / gpu.sm.count),
                 r = std::min<double>(slots, rounds);
    const double step = std::max(law.math, 1e-3 * law.latency);
    const auto set = [&](double b) { return std::pow(std::pow(b * step, 4.0) + std::pow(r * law.latency, 4.0), 0.25); };
    const double sets = std::floor(rounds / r), rest = rounds - sets * r;
    const double all = sets * set(r) + (rest > 0.0 ? set(rest) : 0.0);
    ASSERT_EQ(plan.alone.size(), static_cast<std::size_t>(slots));
    for (int b = 1; b <= slots; ++b) {
      const double seconds = law.compute * set(std::min<double>(b, r)) / all;
      EXPECT_NEAR(static_cast<double>(plan.alone[static_cast<std::size_t>(b - 1)]), seconds * kTicksASecond,
                  1.0 + 1e-9 * seconds * kTicksASecond);
    }
  }
}

TEST(StatedPlan, attentions_blocks_have_their_own_tiles) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 500 && !HasFailure(); ++i) {
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i));
    Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
    gpu.sm.count = static_cast<int>(draws.between(2, 150));
    AttentionWork work;
    work.blocks_per_sm = 1 + static_cast<int>(draws.index(3));
    AttentionBlocks blocks;
    blocks.resident = 1 + static_cast<int>(draws.index(static_cast<std::size_t>(work.blocks_per_sm)));
    blocks.latency = draws.between(100, 3000), blocks.busy = draws.between(100, 3000),
    blocks.block = draws.between(100, 9000);
    const bool equal = draws.index(2) == 0;
    for (std::size_t k = 0; k < (equal ? 1u : 2u + draws.index(20)); ++k)
      blocks.tiles.push_back(std::ceil(draws.between(1, 40)));
    blocks.count = std::ceil(draws.between(1, 5000));
    const double clock = draws.between(1e9, 2e9), longest = *std::max_element(blocks.tiles.begin(), blocks.tiles.end());
    const KernelParts parts{draws.between(1e-6, 5e-6), draws.between(1e-7, 5e-6), draws.between(1e-6, 1e-3)};
    const std::int64_t at_once = std::int64_t{gpu.sm.count} * work.blocks_per_sm;
    const KernelTraffic traffic =
        drawn_traffic(draws, static_cast<int>(std::ceil(blocks.count / static_cast<double>(at_once))));
    const GridPlan plan = plan_of(work, blocks, clock, parts, traffic, gpu);
    EXPECT_EQ(plan.sms, gpu.sm.count);
    EXPECT_EQ(plan.slots, blocks.resident);
    EXPECT_EQ(plan.cohort_blocks, at_once);
    EXPECT_EQ(static_cast<double>(plan.blocks), blocks.count);
    EXPECT_EQ(plan.start, ticks_of(parts.fixed + parts.fill));
    expect_phases(plan, traffic, parts.memory, gpu.dram);
    const auto cycles = [&](double tiles, double b) {
      return tiles * (blocks.latency + b * blocks.busy) + blocks.block;
    };
    ASSERT_EQ(plan.alone.size(), static_cast<std::size_t>(blocks.resident));
    for (int b = 1; b <= blocks.resident; ++b)
      EXPECT_EQ(plan.alone[static_cast<std::size_t>(b - 1)], ticks_of(cycles(longest, b) / clock));
    ASSERT_EQ(plan.lengths.size(), equal ? 0u : blocks.tiles.size());
    for (std::size_t k = 0; k < plan.lengths.size(); ++k)
      EXPECT_NEAR(plan.lengths[k], cycles(blocks.tiles[k], blocks.resident) / cycles(longest, blocks.resident), 1e-12);
  }
}

}  // namespace
}  // namespace ridgeline

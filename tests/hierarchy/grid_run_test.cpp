// Thread blocks as events: classes of SMs against every SM by itself, the scheduler's rules, the DRAM queue's order.
#include "sim/hierarchy/grid_run.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "sim/hardware/load_gpu.h"
#include "sim/hierarchy/dram_queue.h"

namespace ridgeline {
namespace {

const DramSpec& dram() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu.dram;
}

/// Equal blocks of one phase that move nothing: 100 ticks alone, 200 with another on the SM.
GridPlan plain(int sms, int slots, std::int64_t blocks) {
  GridPlan plan;
  plan.sms = sms;
  plan.slots = slots;
  plan.blocks = blocks;
  for (int together = 1; together <= slots; ++together) plan.alone.push_back(100 * together);
  plan.cohort_blocks = blocks;
  plan.cohorts = {{{1.0, 0, 0}}};
  return plan;
}

GridPlan random_plan(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  GridPlan plan;
  plan.sms = pick(1, 132);
  plan.slots = pick(1, 6);
  plan.blocks = pick(1, 3000);
  plan.start = pick(0, 5000);
  plan.dispatch = pick(0, 3) * 80;
  plan.replacement = pick(0, 2) * 300;
  Ticks alone = pick(100, 20000);
  for (int together = 1; together <= plan.slots; ++together) plan.alone.push_back(alone += pick(0, 20000));
  plan.cohort_blocks = pick(0, 1) ? plan.sms * plan.slots : pick(1, 400);
  const int phases = pick(1, 5);
  for (std::int64_t row = 0; row * plan.cohort_blocks < plan.blocks; ++row) {
    auto& cohort = plan.cohorts.emplace_back();
    for (int i = 0; i < phases; ++i)
      cohort.push_back({1.0 / phases, pick(0, 2) * 1000 + pick(0, 40000), pick(0, 1) * pick(0, 20000)});
  }
  plan.stretch = 1.0 + 0.1 * pick(0, 5);
  return plan;
}

/// What a run did, whoever did it: SMs by cohort, phase and time; SMs at work by time.
std::map<std::array<std::int64_t, 4>, std::int64_t> phases_of(const GridRun& run) {
  std::map<std::array<std::int64_t, 4>, std::int64_t> all;
  for (const GridRun::Ran& ran : run.ran) all[{ran.cohort, ran.phase, ran.begin, ran.end}] += ran.sms;
  for (const GridRun::Active& active : run.active) all[{-1, 0, active.begin, active.end}] += active.sms;
  return all;
}

TEST(GridRun, ClassesOfSmsAreEverySmByItselfToTheTick) {
  std::mt19937 random(20261121);
  for (int i = 0; i < 60; ++i) {
    const GridPlan plan = random_plan(random);
    const GridRun classes = run_grid(plan, dram()), each = run_grid(plan, dram(), true);
    EXPECT_EQ(classes.end, each.end) << i;
    EXPECT_EQ(classes.dram_busy, each.dram_busy) << i;
    EXPECT_EQ(classes.most_on_an_sm, each.most_on_an_sm) << i;
    EXPECT_EQ(phases_of(classes), phases_of(each)) << i;
    EXPECT_LE(classes.ran.size(), each.ran.size());
  }
}

TEST(GridRun, EveryBlockGoesThroughItsPhasesOnce) {
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) {
    const GridPlan plan = random_plan(random);
    std::map<std::array<std::int64_t, 2>, std::int64_t> done;
    for (const GridRun::Ran& ran : run_grid(plan, dram()).ran) done[{ran.cohort, ran.phase}] += ran.sms;
    for (const auto& [which, blocks] : done)
      EXPECT_EQ(blocks, std::min(plan.cohort_blocks, plan.blocks - which[0] * plan.cohort_blocks));
    EXPECT_EQ(done.size(), plan.cohorts.size() * plan.cohorts[0].size());
  }
}

TEST(GridRun, OneBlockMoreThanFitsStartsAWave) {
  EXPECT_EQ(run_grid(plain(132, 1, 132), dram()).end, 100);
  EXPECT_EQ(run_grid(plain(132, 1, 133), dram()).end, 200);
  EXPECT_EQ(run_grid(plain(132, 2, 264), dram()).end, 200);
  EXPECT_EQ(run_grid(plain(132, 2, 265), dram()).end, 300);  // alone on its SM
}

TEST(GridRun, BlocksGoToTheEmptiestSmFirst) {
  const GridRun run = run_grid(plain(10, 4, 12), dram());
  EXPECT_EQ(run.most_on_an_sm, 2);
  EXPECT_EQ(run.end, 200);
}

TEST(GridRun, UnequalBlocksStartWhereASlotComesFree) {
  GridPlan plan = plain(2, 1, 4);
  plan.lengths = {1.0, 0.25, 0.25, 0.25};  // the first keeps its SM while the other runs the rest
  const GridRun run = run_grid(plan, dram());
  EXPECT_EQ(run.end, 100);
  EXPECT_EQ(run.most_on_an_sm, 3);
}

TEST(GridRun, ASlotStaysEmptyUntilTheNextBlocksFirstInstruction) {
  GridPlan plan = plain(4, 1, 8);
  plan.replacement = 30;
  EXPECT_EQ(run_grid(plan, dram()).end, 230);
  plan.replacement = 0;
  EXPECT_EQ(run_grid(plan, dram()).end, 200);
  EXPECT_EQ(run_grid(plan, dram()).active.size(), 1u);  // no SM was ever without a block
}

TEST(GridRun, WhatTheDramCannotDeliverInTimeLengthensAPhase) {
  GridPlan plan = plain(132, 1, 132 * 8);
  const Ticks computing = run_grid(plan, dram()).end;
  const std::int64_t bytes = 100000;
  plan.cohorts = {{{1.0, bytes, 0}}};
  const Ticks loading = run_grid(plan, dram()).end;
  const Ticks least = ticks_of(DramQueue::seconds(dram(), 132.0 * 8.0 * bytes, 0.0));
  EXPECT_GT(loading, computing);
  EXPECT_GE(loading + 8, least);
  EXPECT_LT(loading, least + least / 100);
  plan.overlap = 1;
  EXPECT_LE(std::abs(run_grid(plan, dram()).end - least - computing), 8);  // nothing overlaps
}

TEST(DramQueue, RequestsOfOneMomentEndTogetherAndLaterOnesWait) {
  DramQueue together(dram(), 1.0), apart(dram(), 1.0);
  const Ticks both = together.serve(100, 2000000, 0);
  const Ticks first = apart.serve(100, 1000000, 0), second = apart.serve(100, 1000000, 0);
  EXPECT_LT(first, second);
  EXPECT_LE(std::abs(both - second), 1);
  EXPECT_EQ(apart.serve(10 * second, 0, 0), 10 * second);  // idle in between
}

TEST(DramQueue, TurningToWritesAndBackCostsTimeAndWritesAloneDoNot) {
  DramQueue mixed(dram(), 1.0), writing(dram(), 1.0);
  for (int i = 0; i < 100; ++i) {
    mixed.serve(0, 1 << 20, 1 << 20);
    writing.serve(0, 0, 1 << 20);
  }
  EXPECT_EQ(mixed.turns(), 100);
  EXPECT_EQ(writing.turns(), 0);
  const double bytes = 100.0 * (1 << 20);
  EXPECT_NEAR(seconds_of(mixed.busy()) / DramQueue::seconds(dram(), bytes, bytes), 1.0, 1e-6);
  EXPECT_NEAR(seconds_of(writing.busy()) / DramQueue::seconds(dram(), 0.0, bytes), 1.0, 1e-6);
}

TEST(DramQueue, AFewWritesWaitInTheBuffer) {
  DramQueue queue(dram(), 1.0);
  EXPECT_EQ(queue.serve(5, 0, 1000), 5);
  EXPECT_EQ(queue.buffered(), 1000);
  EXPECT_GT(queue.serve(5, 0, 256 << 10), 5);
  EXPECT_EQ(queue.buffered(), 0);
}

TEST(EventQueue, TakesEventsOfOneTimeInTheOrderTheyWereAnnounced) {
  EventQueue<int> queue;
  for (int i = 0; i < 20; ++i) queue.announce(i % 2 == 0 ? 7 : 3, i);
  for (int i = 1; i < 20; i += 2) EXPECT_EQ(queue.take(), i);
  for (int i = 0; i < 20; i += 2) EXPECT_EQ(queue.take(), i);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace ridgeline

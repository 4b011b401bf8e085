// Who holds the memory: sums of one run told in three ways, each of them the whole.
#include "sim/memory/memory_report.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "sim/answer/step_run.h"

namespace ridgeline {
namespace {

struct MemoryReports : ::testing::Test {
  Session session;
  StepRun run{session, scenario(), "roofline"};

  static Scenario scenario() {
    ScenarioSource source;
    source.text =
        "{hardware: nvidia-h200-sxm-141gb, model: {family: gpt2, layers: 6, heads: 4, hidden: 256, vocabulary: 4000, "
        "max_positions: 512, dropout: 0.1}, training: {micro_batch: 4, sequence_length: 256, precision: fp32, "
        "attention: eager}}";
    source.text_name = "test";
    return load_scenario(source);
  }
  [[nodiscard]] MemoryReport report(std::size_t most_stretches = 1000) const {
    return report_memory(run.program(), run.memory_run(), most_stretches);
  }
};

std::int64_t sum_of(const BytesByCategory& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

TEST_F(MemoryReports, LayersAndMakersHoldWhatIsAllocatedAtThePeak) {
  const MemoryReport r = report();
  EXPECT_EQ(r.allocated, run.memory().peak_allocated);
  EXPECT_EQ(sum_of(r.bytes), r.allocated);
  BytesByCategory by_layer{}, by_maker{};
  for (const MemoryReport::Layer& layer : r.layers)
    for (std::size_t c = 0; c < by_layer.size(); ++c) by_layer[c] += layer.bytes[c];
  for (const MemoryReport::Holder& holder : r.holders)
    by_maker[static_cast<std::size_t>(holder.category)] += holder.bytes;
  EXPECT_EQ(by_layer, r.bytes);
  EXPECT_EQ(by_maker, r.bytes);
  for (std::size_t i = 1; i < r.layers.size(); ++i) EXPECT_LT(r.layers[i - 1].layer, r.layers[i].layer);
  for (std::size_t i = 1; i < r.holders.size(); ++i) EXPECT_GE(r.holders[i - 1].bytes, r.holders[i].bytes);
}

// Weights of six equal blocks: 12 h^2 + 13 h numbers each; outside, tables of tokens and positions and the last norm.
// GPT-2 keeps a mask of 512 x 512 in each block besides.
TEST_F(MemoryReports, WhatWasThereBeforeTheStepIsOfTheSetUp) {
  const MemoryReport r = report();
  const auto weights = std::find_if(r.holders.begin(), r.holders.end(), [](const MemoryReport::Holder& h) {
    return h.category == Category::weights && h.phase == Phase::setup;
  });
  ASSERT_NE(weights, r.holders.end());
  EXPECT_EQ(weights->op, "set-up");
  constexpr std::int64_t kBlock = 12 * 256 * 256 + 13 * 256, kOutside = (4000 + 512 + 2) * 256,
                         kAll = 4 * (6 * (kBlock + 512 * 512) + kOutside);
  EXPECT_GE(weights->bytes, kAll);
  EXPECT_LT(weights->bytes, kAll + (weights->count << 9)) << "blocks of 512 bytes";
  EXPECT_EQ(weights->count, 6 * 13 + 4);
  for (const MemoryReport::Holder& h : r.holders)
    if (h.category == Category::activations) {
      EXPECT_NE(h.phase, Phase::setup) << h.op;
    }
}

TEST_F(MemoryReports, WhatLiesUnusedIsReservedAndNotAllocated) {
  const MemoryReport r = report();
  EXPECT_EQ(r.unused.free, r.reserved - r.allocated);
  EXPECT_LE(r.unused.largest_free, r.unused.free);
  EXPECT_LE(r.unused.whole_segments, r.unused.free);
  EXPECT_GT(r.unused.rounding, 0);
  EXPECT_LT(r.unused.rounding, r.allocated / 10);
  EXPECT_GT(r.unused.segments, 0);
}

TEST_F(MemoryReports, ThePeakIsWhereMostIsAllocated) {
  const MemoryReport r = report();
  EXPECT_EQ(r.peak_op, run.memory().peak_op);
  EXPECT_EQ(r.peak.phase, run.memory().peak_phase);
  std::int64_t most = 0;
  for (const MemoryReport::Stretch& s : r.stretches) {
    most = std::max(most, s.allocated);
    EXPECT_EQ(sum_of(s.bytes), s.allocated);
    EXPECT_LE(s.allocated, s.reserved);
  }
  EXPECT_EQ(most, r.allocated);
}

/// The most allocated in each phase, sample by sample.
std::map<Phase, std::int64_t> most_by_phase(const StepRun& run) {
  std::map<Phase, std::int64_t> most;
  Phase phase = Phase::forward;
  for (const MemorySample& sample : run.memory_run().samples) {
    const std::uint32_t call = run.program().actions[sample.action].call;
    if (call != Action::kNoCall) phase = run.program().trace->calls[call].phase;
    most[phase] = std::max(most[phase], sample.allocated);
  }
  return most;
}

// However few stretches there are, each has one phase and none of its moments is lost.
TEST_F(MemoryReports, FewerStretchesAreThoseOfTheSamePhasesJoined) {
  const std::vector<MemoryReport::Stretch> all = report().stretches;
  ASSERT_GT(all.size(), 12U);
  const std::map<Phase, std::int64_t> most = most_by_phase(run);
  for (const std::size_t limit : {1000, 12, 8, 6}) {
    const std::vector<MemoryReport::Stretch> few = report(limit).stretches;
    EXPECT_LE(few.size(), limit);
    std::map<Phase, std::int64_t> told;
    for (const MemoryReport::Stretch& s : few) told[s.phase] = std::max(told[s.phase], s.allocated);
    EXPECT_EQ(told, most) << limit;
  }
}

// Forward through blocks 0 to 5, back through 5 to 0; what lies outside of the blocks stands apart.
TEST_F(MemoryReports, JoinedStretchesNameTheirFirstAndTheirLastBlock) {
  const std::vector<MemoryReport::Stretch> all = report().stretches, few = report(all.size() - 1).stretches;
  EXPECT_LT(few.size(), all.size());
  std::vector<std::pair<std::int64_t, std::int64_t>> forward, backward;
  for (const MemoryReport::Stretch& s : few) {
    EXPECT_EQ(s.first_layer < 0, s.last_layer < 0) << "inside or outside of blocks";
    if (s.first_layer >= 0 && s.phase == Phase::forward) forward.emplace_back(s.first_layer, s.last_layer);
    if (s.first_layer >= 0 && s.phase == Phase::backward) backward.emplace_back(s.first_layer, s.last_layer);
  }
  EXPECT_EQ(forward, (std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(backward, (std::vector<std::pair<std::int64_t, std::int64_t>>{{5, 4}, {3, 2}, {1, 0}}));
}

TEST_F(MemoryReports, ARunOutOfMemoryHasNone) {
  EXPECT_TRUE(report_memory(run.program(), MemoryResult{}).stretches.empty());
}

}  // namespace
}  // namespace ridgeline

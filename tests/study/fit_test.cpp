// The largest batch is one that fits with a next one that does not; what ran out for others is not called fitting.
#include "sim/study/fit.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/answer/advice.h"
#include "sim/answer/changes.h"
#include "sim/input/lines.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

FitResult fitted(const Scenario& scenario, std::string_view engine) {
  Session session;
  return fit_batch(session, scenario, engine);
}

Scenario scenario(std::vector<config::Override> changes = {}) {
  ScenarioSource source;
  source.text =
      "{hardware: nvidia-t4, model: {family: gpt2, layers: 4, heads: 8, hidden: 512, vocabulary: 8000, "
      "max_positions: 512, dropout: 0.1}, training: {micro_batch: 4, sequence_length: 512, attention: eager, "
      "gradient_accumulation: 3}}";
  source.text_name = "test";
  source.overrides = std::move(changes);
  return load_scenario(source);
}
bool fits(Scenario s, std::int64_t micro_batch, std::int64_t accumulation) {
  s.training.micro_batch = micro_batch;
  s.training.gradient_accumulation = accumulation;
  return predict_memory(s).runs;
}

TEST(Fit, TheLargestBatchFitsAndTheNextOneDoesNot) {
  const Scenario s = scenario();
  const FitResult r = fitted(s, "analytic");
  ASSERT_TRUE(r.largest);
  const std::int64_t found = r.largest->micro_batch;
  EXPECT_GT(found, 12) << "above the batch of the scenario nothing is accumulated";
  EXPECT_EQ(r.largest->gradient_accumulation, 1);
  EXPECT_TRUE(r.largest->prediction.memory.runs);
  EXPECT_TRUE(fits(s, found, 1));
  EXPECT_FALSE(fits(s, found + 1, 1));
  EXPECT_EQ(r.failing_micro_batch, found + 1);
  ASSERT_TRUE(r.failing && r.failing->out_of_memory);
  EXPECT_GT(r.failing->out_of_memory->missing_bytes, 0);
  EXPECT_GT(r.failing->needed, r.capacity);
}

TEST(Fit, BelowTheBatchOfTheScenarioMicroBatchesAreAccumulated) {
  const Scenario s = scenario({{"hardware.dram.capacity", "2 GiB", ""}});
  const FitResult r = fitted(s, "analytic");
  ASSERT_TRUE(r.largest);
  const std::int64_t found = r.largest->micro_batch;
  ASSERT_LT(found, 12);
  ASSERT_GE(found, 1);
  EXPECT_GE(found * r.largest->gradient_accumulation, 12);
  EXPECT_LT(found * (r.largest->gradient_accumulation - 1), 12);
  EXPECT_TRUE(fits(s, found, r.largest->gradient_accumulation));
  EXPECT_FALSE(fits(s, found + 1, (12 + found) / (found + 1)));
}

TEST(Fit, WhereTheBatchDoesNotDivideTheLargestMicroBatchThatKeepsItIsToldToo) {
  int seen = 0;
  for (int gib10 = 20; gib10 <= 45; ++gib10) {
    const Scenario s = scenario({{"hardware.dram.capacity", std::to_string(gib10 / 10.0) + " GiB", ""}});
    const FitResult r = fitted(s, "roofline");
    if (!r.largest) continue;
    const std::int64_t batch = r.largest->micro_batch * r.largest->gradient_accumulation;
    EXPECT_EQ(r.keeps_batch, batch == 12);
    if (r.keeps_batch || r.largest->micro_batch > 12) continue;
    ASSERT_TRUE(r.same_batch);
    EXPECT_EQ(r.same_batch->micro_batch * r.same_batch->gradient_accumulation, 12);
    EXPECT_LT(r.same_batch->micro_batch, r.largest->micro_batch);
    ++seen;
  }
  EXPECT_GT(seen, 0);
}

// Segments of 20 MiB and more leave gaps: of some batches the next larger one fits where they do not.
TEST(Fit, ABatchThatFitsBeyondOneThatFailsIsFound) {
  int gaps = 0;
  for (int gib100 = 160; gib100 <= 170; ++gib100) {
    const Scenario s = scenario({{"hardware.dram.capacity", std::to_string(gib100 / 100.0) + " GiB", ""},
                                 {"training.sequence_length", "300", ""},
                                 {"training.attention", "sdpa", ""}});
    std::int64_t last = 12;
    while (fits(s, last + 1, 1)) ++last;
    if (!fits(s, last + 2, 1)) continue;
    ++gaps;
    const FitResult r = fitted(s, "roofline");
    ASSERT_TRUE(r.largest);
    EXPECT_GE(r.largest->micro_batch, last + 2) << gib100 / 100.0 << " GiB";
    EXPECT_FALSE(r.monotone);
  }
  EXPECT_GT(gaps, 0) << "no capacity shows what this test is about";
}

TEST(Fit, MoreMemoryNeverHoldsLess) {
  std::int64_t before = 0;
  for (const char* capacity : {"2 GiB", "3 GiB", "5 GiB", "9 GiB", "14 GiB"}) {
    const FitResult r = fitted(scenario({{"hardware.dram.capacity", capacity, ""}}), "roofline");
    const std::int64_t found = r.largest ? r.largest->micro_batch : 0;
    EXPECT_GE(found, before) << capacity;
    before = found;
  }
  EXPECT_GT(before, 0);
}

TEST(Fit, WhereNothingFitsTheChangesNamedDoFit) {
  // Weights, gradients and states fit; the scores of eager attention do not.
  const Scenario s = scenario({{"training.sequence_length", "512", ""}, {"hardware.dram.capacity", "0.7 GiB", ""}});
  const FitResult r = fitted(s, "analytic");
  ASSERT_FALSE(r.largest);
  EXPECT_EQ(r.failing_micro_batch, 1);
  ASSERT_TRUE(r.failing && r.failing->out_of_memory);
  EXPECT_FALSE(r.failing->out_of_memory->op.empty());
  ASSERT_FALSE(r.would_fit.empty());
  std::vector<config::Override> changes{{"hardware.dram.capacity", "0.7 GiB", ""}, {"training.micro_batch", "1", ""}};
  for (const std::string& set : r.would_fit) changes.push_back(config::parse_override(set));
  EXPECT_TRUE(predict_memory(scenario(changes)).fits);
}

TEST(Fit, ADeviceTooSmallForTheWeightsIsAnAnswerWithoutAdvice) {
  const FitResult r = fitted(scenario({{"hardware.dram.capacity", "0.45 GiB", ""}}), "analytic");
  EXPECT_FALSE(r.largest);
  EXPECT_TRUE(r.would_fit.empty());
}

TEST(Advice, WhatSavesMemoryIsToldWithWhatItCosts) {
  const Scenario s = scenario();
  Session session;
  const StepRun run(session, s, "analytic");
  const Prediction& base = run.prediction();
  const auto advice = find_advice(run);
  const auto found = std::find_if(advice.begin(), advice.end(), [](const Advice& a) {
    return a.change == "training.activation_checkpointing=block";
  });
  ASSERT_NE(found, advice.end());
  Scenario changed = s;
  changed.training.activation_checkpointing = ActivationCheckpointing::block;
  const Prediction p = predict(changed, "analytic");
  EXPECT_EQ(found->memory_saved_bytes, base.memory.device_used - p.memory.device_used);
  EXPECT_EQ(found->time_saved, base.step.time - p.step.time);
  EXPECT_LT(found->time_saved, Seconds{0});
}

TEST(Fit, FromNothingToTheFirstSequenceToTheSecondNoneIsPassedOver) {
  int none = 0, one = 0, more = 0;
  for (int mib = 700; mib <= 1500; mib += 50) {
    const Scenario s = scenario({{"hardware.dram.capacity", std::to_string(mib) + " MiB", ""}});
    const FitResult r = fitted(s, "roofline");
    ASSERT_EQ(r.largest.has_value(), fits(s, 1, 12)) << mib << " MiB";
    if (!r.largest) {
      ++none;
      continue;
    }
    ++(r.largest->micro_batch == 1 ? one : more);
    const std::int64_t next = r.largest->micro_batch + 1;
    EXPECT_FALSE(fits(s, next, (12 + next - 1) / next)) << mib << " MiB";
  }
  EXPECT_GT(none, 0);
  EXPECT_GT(one, 0);
  EXPECT_GT(more, 0);
}

}  // namespace
}  // namespace ridgeline

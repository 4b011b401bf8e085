// A plan's question whole: its candidates with their bounds, as the points of a sweep, and their labels.
#include "sim/study/plan/plan_question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/study/plan/accepted_names.h"
#include "sim/study/plan/plan_base.h"
#include "sim/study/plan/plan_bounds.h"
#include "sim/study/plan/plan_space.h"
#include "sim/study/sweep/sweep_scenario.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PlanRequest llama_on(std::vector<std::int64_t> gpus, std::vector<config::Override> overrides = {}) {
  PlanRequest request;
  request.source.text =
      "{hardware: nvidia-a100-sxm4-80gb, title: a small llama, model: {family: llama, code: plain, layers: 4, heads: "
      "8, "
      "hidden: 512, feed_forward: 1024, vocabulary: 8000}, training: {micro_batch: 8, sequence_length: 256, precision: "
      "fp32}}";
  request.source.text_name = "question";
  request.source.overrides = std::move(overrides);
  request.gpus = std::move(gpus);
  request.engine = "roofline";
  return request;
}

TEST(PlanQuestionTest, IsASweepOverItsCandidates) {
  const PlanRequest request = llama_on({1, 2}, {{"hardware.dram.capacity", "30 GB", ""}});
  Session session;
  const PlanQuestion question = plan_question(request, session, 2);
  EXPECT_EQ(question.title, "a small llama");
  EXPECT_EQ(question.cluster, "hgx-a100-x4");
  EXPECT_EQ(question.assumed, "hgx-a100-x4 is assumed for nvidia-a100-sxm4-80gb; --cluster names another");
  EXPECT_EQ(question.batch, 8);
  EXPECT_EQ(question.capacity, 30'000'000'000);
  EXPECT_EQ(question.hardware, "nvidia-a100-sxm4-80gb");
  EXPECT_EQ(question.sweep.title, "plan of a small llama");
  EXPECT_EQ(question.sweep.file, "plan");
  EXPECT_EQ(question.sweep.engine, "roofline");
  EXPECT_TRUE(question.sweep.brief);
  EXPECT_EQ(question.sweep.fingerprint, fingerprint_of(question.sweep));
  EXPECT_NE(question.sweep.fingerprint, 0u);
  const PlanBase base = plan_base(request, session.descriptions());
  std::vector<PlanCandidate> expected = plan_space(base, 1, session.descriptions());
  const std::size_t on_one = expected.size();
  for (const PlanCandidate& more : plan_space(base, 2, session.descriptions())) expected.push_back(more);
  ASSERT_EQ(question.candidates.size(), expected.size());
  ASSERT_EQ(question.sweep.axes.size(), 1u);
  EXPECT_EQ(question.sweep.axes[0].name, "plan");
  ASSERT_EQ(question.sweep.axes[0].values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const PlanCandidate& candidate = question.candidates[i];
    EXPECT_EQ(candidate.gpus, i < on_one ? 1 : 2);
    EXPECT_EQ(split_words(candidate), split_words(expected[i]));
    EXPECT_EQ(step_words(candidate), step_words(expected[i]));
    const AxisValue& value = question.sweep.axes[0].values[i];
    EXPECT_EQ(value.label, std::to_string(i));
    EXPECT_EQ(value.factor, 0.0);
    std::string changes, all;
    for (const config::Override& change : value.overrides) changes += change.key + "=" + change.value + " ";
    for (const config::Override& change : all_changes(base, expected[i])) all += change.key + "=" + change.value + " ";
    EXPECT_EQ(changes, all);
    EXPECT_EQ(changes.starts_with("hardware.dram.capacity=30 GB "), true);
  }
}

/// Each candidate's bounds are those of its own scenario and micro-step; nothing is timed of what is too large anyway.
void expect_bounds(const PlanRequest& request, std::size_t least_too_large) {
  Session session;
  const PlanQuestion question = plan_question(request, session, 2);
  Remembered<HardwareSheet> sheets;
  std::size_t too_large = 0, run = 0;
  for (std::size_t i = 0; i < question.candidates.size(); ++i) {
    const PlanCandidate& candidate = question.candidates[i];
    SCOPED_TRACE(split_words(candidate) + "; " + step_words(candidate));
    std::optional<Scenario> scenario;
    std::string key, why;
    try {
      scenario = scenario_of(question.sweep, {i}, session.descriptions(), sheets).scenario;
    } catch (const config::ConfigError& error) {
      key = error.key();
      why = error.message();
    } catch (const UserError& error) {
      why = error.what();
    }
    if (!scenario || !candidate.refused.empty()) {
      EXPECT_NE(candidate.refused, "");
      EXPECT_EQ(candidate.least_time, Seconds{});
      EXPECT_EQ(candidate.least_memory, 0);
      if (candidate.refused_key == key) {
        EXPECT_EQ(candidate.refused, why);
      }
      continue;
    }
    ++run;
    const bool fits = least_memory(*scenario, {}) <= question.capacity;
    too_large += !fits;
    const MicroStep micro_step =
        fits ? time_micro_step(session, micro_step_of(*scenario), request.engine) : MicroStep{};
    EXPECT_EQ(candidate.least_memory, least_memory(*scenario, micro_step));
    EXPECT_EQ(candidate.least_time, least_time(*scenario, micro_step));
    EXPECT_GT(candidate.least_time, Seconds{});
  }
  EXPECT_GT(run, 10u);
  EXPECT_GE(too_large, least_too_large);
}

TEST(PlanQuestionTest, CandidatesHaveTheBoundsOfTheirScenarios) {
  expect_bounds(llama_on({1, 2, 4}), 0);
  expect_bounds(llama_on({2, 4}, {{"training.parallel.framework", "megatron", ""}}), 0);
  expect_bounds(llama_on({4}, {{"training.parallel.context", "2", ""}}), 0);
}

// 1 GB holds some of the ways and not others.
TEST(PlanQuestionTest, WhatIsTooLargeIsNotTimed) {
  expect_bounds(llama_on({2}, {{"hardware.dram.capacity", "1 GB", ""}}), 5);
}

TEST(PlanQuestionTest, SeveralNodesHaveTheirNetwork) {
  expect_bounds(llama_on({8, 16}, {{"training.parallel.pipeline", "1", ""},
                                   {"training.activation_checkpointing", "none", ""},
                                   {"cluster", "dgx-a100", ""}}),
                0);
}

TEST(PlanQuestionTest, AnUnknownEngineIsAMistake) {
  PlanRequest request = llama_on({1});
  request.engine = "by guess";
  Session session;
  EXPECT_THROW((void)plan_question(request, session, 1), UserError);
}

TEST(PlanQuestionTest, IsNamedAfterItsFile) {
  PlanRequest request = llama_on({1});
  request.source.text.clear();
  request.source.file = std::string(RIDGELINE_SOURCE_DIR) + "/scenarios/bert-large-fp32.yaml";
  Session session;
  EXPECT_EQ(plan_question(request, session, 1).sweep.file, *request.source.file);
}

// The names that the reader takes there, in its order; none of a key that takes no names.
TEST(PlanQuestionTest, NamesAreThoseOfTheReader) {
  Session session;
  const PlanBase base = plan_base(llama_on({2}), session.descriptions());
  const std::vector<config::Override> one_rank{{"training.parallel.data", "1", "test"}};
  const auto names = [&](const std::string& key) {
    return accepted_names(base.tree, one_rank, "training." + key, session.descriptions());
  };
  EXPECT_THAT(names("activation_checkpointing"), ElementsAre("none", "block", "selective", "operations"));
  EXPECT_THAT(names("parallel.tensor_style"), ElementsAre("dtensor", "by-hand"));
  EXPECT_THAT(names("parallel.strategy"),
              ElementsAre("ddp", "zero1", "zero2", "zero3", "fsdp", "fsdp1", "hsdp", "dataparallel"));
  EXPECT_THAT(names("micro_batch"), IsEmpty());
  EXPECT_THAT(names("no_such_key"), IsEmpty());
}

PlanCandidate labelled(std::int64_t data, std::int64_t tensor, std::int64_t pipeline) {
  PlanCandidate c;
  c.data = data;
  c.tensor = tensor;
  c.pipeline = pipeline;
  return c;
}

TEST(PlanWords, SayWhatIsSplit) {
  PlanCandidate c = labelled(1, 1, 1);
  EXPECT_EQ(split_words(c), "data 1");
  c.strategy = "ddp";
  EXPECT_EQ(split_words(c), "data 1") << "alone, nothing has to stay equal";
  c.data = 2;
  EXPECT_EQ(split_words(c), "data 2 ddp");
  c.strategy = "hsdp", c.data = 8, c.replicate = 2;
  EXPECT_EQ(split_words(c), "data 8 hsdp, 2 replicas");
  c.replicate = 1;
  EXPECT_EQ(split_words(c), "data 8 hsdp");
  c.strategy.clear();
  EXPECT_EQ(split_words(c), "data 8");
  c = labelled(1, 4, 1);
  EXPECT_EQ(split_words(c), "tensor 4");
  c.tensor_style = "by-hand", c.sequence_parallel = true;
  EXPECT_EQ(split_words(c), "tensor 4 by-hand, sequence");
  c = labelled(1, 1, 3);
  EXPECT_EQ(split_words(c), "pipeline 3");
  c.schedule = "zbv";
  EXPECT_EQ(split_words(c), "pipeline 3 zbv");
  c.virtual_stages = 2;
  EXPECT_EQ(split_words(c), "pipeline 3 zbv, 2 stages a rank");
  c = labelled(1, 1, 1);
  c.context = 2;
  EXPECT_EQ(split_words(c), "context 2");
  c.data = 4, c.expert = 2;
  EXPECT_EQ(split_words(c), "data 4, context 2, expert 2");
  c = labelled(2, 3, 4);
  c.strategy = "fsdp", c.tensor_style = "dtensor", c.schedule = "1f1b", c.context = 5, c.expert = 6;
  EXPECT_EQ(split_words(c), "data 2 fsdp, tensor 3 dtensor, pipeline 4 1f1b, context 5, expert 6");
}

TEST(PlanWords, SayWhatAStepIs) {
  PlanCandidate c;
  c.accumulation = 3, c.micro_batch = 4;
  EXPECT_EQ(step_words(c), "3 x 4");
  c.recompute = "none";
  EXPECT_EQ(step_words(c), "3 x 4");
  c.recompute = "block";
  EXPECT_EQ(step_words(c), "3 x 4, recompute block");
}

}  // namespace
}  // namespace ridgeline

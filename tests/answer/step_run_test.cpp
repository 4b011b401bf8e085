// Each part of an answer is made once and is what a run of its own would say; sessions change no bit of it.
#include "sim/answer/step_run.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "sim/answer/advice.h"
#include "sim/answer/sensitivity.h"
#include "sim/answer/step_detail.h"
#include "sim/report/json/prediction_json.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

Scenario scenario_of(const std::string& model, int micro_batch, const std::string& more = "") {
  ScenarioSource source;
  source.text = "{hardware: nvidia-a100-sxm4-80gb, model: " + model +
                ", training: {micro_batch: " + std::to_string(micro_batch) +
                ", sequence_length: 128, precision: amp-bf16" + more + "}}";
  source.text_name = "test";
  return load_scenario(source);
}
std::string text_of(const Prediction& p) { return prediction_json(p).dump(); }

TEST(StepRun, PartsAreMadeOnceAndAgree) {
  Session session;
  const StepRun run(session, scenario_of("bert-base", 4), "analytic");
  EXPECT_EQ(&run.times(), &run.times());
  EXPECT_EQ(&run.prediction(), &run.prediction());
  EXPECT_EQ(&run.memory_run(), &run.memory_run());
  EXPECT_EQ(run.times().size(), run.timeline().kernels.size());
  EXPECT_EQ(run.step().time, run.timeline().step);
  EXPECT_EQ(run.prediction().step.time, run.timeline().step);
  EXPECT_EQ(run.prediction().memory.peak_allocated, run.memory_run().peak_allocated);
  EXPECT_EQ(step_detail(run).spans.size(), run.times().size());
  EXPECT_EQ(step_time(run.trace(), run.scenario(), "analytic"), run.timeline().step);
}

TEST(StepRun, WhatAGpuCannotIsSaidWhereItWasAskedFor) {
  Session session;
  const Scenario scenario = scenario_of("bert-base", 4, ", attention: flash");
  Scenario asked = scenario;
  asked.training.precision = Precision::fp32;
  try {
    static_cast<void>(StepRun(session, asked, "analytic").trace());
    FAIL();
  } catch (const UserError& mistake) {
    EXPECT_STREQ(mistake.what(), "test:1:134: training.attention: FlashAttention-2 takes fp16 and bf16 only");
  }
  asked.asked = nullptr;
  try {
    static_cast<void>(StepRun(session, asked, "analytic").trace());
    FAIL();
  } catch (const UserError& mistake) {
    EXPECT_STREQ(mistake.what(), "training.attention: FlashAttention-2 takes fp16 and bf16 only");
  }
}

TEST(StepRun, TheRangeOfAStepThatWaitsForNoHostIsThatOfItsKernels) {
  Session session;
  Scenario scenario = scenario_of("bert-large", 16);
  scenario.host.scale = scenario.host.least_scale = scenario.host.most_scale = 0.01;
  scenario.host.known = true;           // no machine of others, whose range has more in it
  scenario.gpu.power.limit = Watts{0};  // none, so that slower kernels run at the same clock
  const StepRun run(session, scenario, "analytic");
  const BusyRange range = busy_range(launched_kernels(run.program()), run.times(),
                                     ChipRanges(residual_ranges(), scenario.gpu, scenario.software.name), "analytic");
  ASSERT_LT(range.low, 0.99);
  ASSERT_GT(range.high, 1.01);
  // Gaps between kernels stay as they are.
  const StepPrediction& step = run.step();
  const double busy = run.timeline().gpu_busy.value();
  EXPECT_NEAR((step.time - step.low).value() / busy, 1.0 - range.low, 0.05 * (1.0 - range.low));
  EXPECT_NEAR((step.high - step.time).value() / busy, range.high - 1.0, 0.05 * (range.high - 1.0));
}

TEST(StepRun, BesideAnotherHostIsAScenarioThatNamesIt) {
  std::vector<Scenario> scenarios{scenario_of("bert-base", 2)};
  for (const char* parallel : {"data: 4", "pipeline: 4"}) {
    ScenarioSource source;
    source.text = std::string(
                      "{cluster: h200-x4, model: gpt2, training: "
                      "{micro_batch: 1, sequence_length: 128, precision: amp-bf16, gradient_accumulation: 4, "
                      "parallel: {") +
                  parallel + "}}}";
    source.text_name = parallel;
    scenarios.push_back(load_scenario(source));
  }
  for (const Scenario& scenario : scenarios) {
    Session session;
    const StepRun run(session, scenario, "analytic");
    std::set<double> times{run.timeline().step.value()};
    for (const double scale : {0.05, 3.0, 7.0}) {
      Scenario other = scenario;
      other.host.scale = scale;
      const Seconds beside = run.step_beside(other.host);
      EXPECT_EQ(beside, StepRun(session, other, "analytic").timeline().step) << scale;
      times.insert(beside.value());
    }
    EXPECT_EQ(times.size(), 4u);  // each of them waits for its host
  }
}

TEST(StepRun, TheOrderOfTheQuestionsChangesNothing) {
  for (const char* engine : {"roofline", "analytic", "simulate"}) {
    Session session;
    const StepRun first(session, scenario_of("bert-base", 2), engine),
        second(session, scenario_of("bert-base", 2), engine);
    (void)first.memory_run();
    (void)first.memory();
    const std::string one = text_of(first.prediction()), other = text_of(second.prediction());
    EXPECT_EQ(one, other);
    EXPECT_EQ(one, text_of(predict(scenario_of("bert-base", 2), engine)));
  }
}

// On roomy devices, on full ones, and under settings that the device's size decides.
TEST(StepRun, MemoryIsTheSameWhereItsRunIsReadToo) {
  const auto memory_of = [](const Scenario& scenario, bool expected) {
    Session session;
    StepRun run(session, scenario, "analytic");
    if (expected) run.expect_memory_run();
    return text_of(run.prediction());
  };
  std::vector<Scenario> scenarios{scenario_of("bert-base", 4),
                                  scenario_of("bert-large", 4, ", optimizer: {name: sgd}")};
  scenarios.push_back(scenario_of("bert-large", 16));
  scenarios.back().allocator.expandable_segments = true;
  scenarios.push_back(scenario_of("bert-large", 16));
  scenarios.back().allocator.memory_fraction = 0.3;
  scenarios.push_back(scenario_of("gpt2", 16, ", gradient_accumulation: 4"));
  for (const double gigabytes : {4.0, 6.0, 8.0, 9.0, 10.0}) {
    scenarios.push_back(scenario_of("bert-large", 8));
    scenarios.back().gpu.dram.capacity = Bytes{gigabytes * 1e9};
  }
  std::set<std::string_view> verdicts;
  for (const Scenario& scenario : scenarios) {
    EXPECT_EQ(memory_of(scenario, true), memory_of(scenario, false));
    verdicts.insert(verdict(predict(scenario, "analytic").memory));
  }
  EXPECT_GE(verdicts.size(), 2u);
}

TEST(StepRun, ManyThreadsSeeOneValue) {
  Session session;
  const StepRun run(session, scenario_of("bert-base", 4), "analytic");
  std::vector<const Prediction*> seen(8);
  {
    std::vector<std::jthread> threads;
    for (auto& place : seen) threads.emplace_back([&run, &place] { place = &run.prediction(); });
  }
  for (const Prediction* p : seen) EXPECT_EQ(p, seen.front());
}

TEST(StepRun, AStoppedRunThrowsAndAnswersNothing) {
  Session session;
  std::stop_source stop;
  const Budget budget({}, stop.get_token());
  const UnderBudget under(&budget);
  const StepRun run(session, scenario_of("bert-base", 4), "analytic");
  const Seconds time = run.timeline().step;
  stop.request_stop();
  EXPECT_THROW((void)run.prediction(), Cancelled);
  EXPECT_THROW(step_sensitivity(run), Cancelled);
  EXPECT_EQ(run.timeline().step, time);  // what was made stays
}

TEST(StepRun, AMistakeIsToldEachTime) {
  Session session;
  EXPECT_THROW(StepRun(session, scenario_of("bert-base", 4), "analytical"), UserError);
  ScenarioSource source;
  source.text =
      "{hardware: nvidia-v100-sxm2-16gb, model: gpt2, training: {micro_batch: 2, sequence_length: 128, "
      "precision: amp-fp16, attention: flash}}";
  source.text_name = "test";
  const StepRun run(session, load_scenario(source), "analytic");
  EXPECT_THROW((void)run.prediction(), UserError);
  EXPECT_THROW((void)run.prediction(), UserError);
}

TEST(Session, WhatItRemembersChangesNoBit) {
  Session session, small({.traces = 1, .trace_bytes = 1, .gpus = 1, .kernels_a_gpu = 8});
  for (int round = 0; round < 2; ++round)
    for (const char* model : {"bert-base", "gpt2"})
      for (const int batch : {1, 4})
        for (const char* gpu : {"nvidia-a100-sxm4-80gb", "nvidia-t4"}) {
          ScenarioSource source;
          source.text = "{hardware: " + std::string(gpu) + ", model: " + model +
                        ", training: {micro_batch: " + std::to_string(batch) +
                        ", sequence_length: 64, precision: amp-fp16}}";
          source.text_name = "test";
          const Scenario scenario = load_scenario(source);
          const std::string alone = text_of(predict(scenario, "analytic"));
          EXPECT_EQ(text_of(StepRun(session, scenario, "analytic").prediction()), alone);
          EXPECT_EQ(text_of(StepRun(small, scenario, "analytic").prediction()), alone);
        }
}

TEST(Session, TracesAndKernelsAreShared) {
  Session session;
  const Scenario scenario = scenario_of("bert-base", 4);
  Scenario other = scenario;
  other.gpu.dram.bandwidth = other.gpu.dram.bandwidth * 2.0;
  EXPECT_EQ(session.trace(scenario), session.trace(other));
  EXPECT_EQ(session.kernels(scenario.gpu, scenario.software), session.kernels(Gpu(scenario.gpu), scenario.software));
  EXPECT_NE(session.kernels(scenario.gpu, scenario.software), session.kernels(other.gpu, scenario.software));
}

TEST(Recent, TheOneAskedForLongestAgoIsDropped) {
  Recent<int, const int> recent(2);
  int made = 0;
  const auto get = [&](int key) { return *recent.get(key, [&] { return ++made, std::make_shared<const int>(key); }); };
  get(1), get(2), get(1), get(3);
  EXPECT_EQ(made, 3);
  get(1);
  EXPECT_EQ(made, 3);
  get(2);
  EXPECT_EQ(made, 4);
}

TEST(Recent, WeightsAreBoundedButForTheLast) {
  Recent<int, const int> recent(10, 100);
  int made = 0;
  const auto get = [&](int key) {
    return recent.get(
        key, [&] { return ++made, std::make_shared<const int>(key); },
        [](int weight) { return static_cast<std::uint64_t>(weight); });
  };
  get(40), get(50), get(40), get(50);
  EXPECT_EQ(made, 2);
  get(60);  // 50 + 60 > 100
  EXPECT_EQ(made, 3);
  get(60);
  EXPECT_EQ(made, 3);
  get(40);
  EXPECT_EQ(made, 4);
  get(500), get(500);
  EXPECT_EQ(made, 5);
}

TEST(Recent, WhatCannotBeMadeIsTriedAgain) {
  Recent<int, const int> recent(2);
  EXPECT_THROW(recent.get(1, []() -> std::shared_ptr<const int> { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(*recent.get(1, [] { return std::make_shared<const int>(7); }), 7);
}

}  // namespace
}  // namespace ridgeline

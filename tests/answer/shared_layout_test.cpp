// Programs that share a layout are what each would be alone, whatever was asked before and on whichever thread.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "sim/answer/step_run.h"
#include "sim/report/json/prediction_json.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

struct Asked {
  std::string gpu, model;
  int micro_batch;
};

Scenario scenario_for(const Asked& asked) {
  ScenarioSource source;
  source.text = "{hardware: " + asked.gpu + ", model: " + asked.model +
                ", training: {micro_batch: " + std::to_string(asked.micro_batch) +
                ", sequence_length: 128, precision: amp-fp16, gradient_clipping: 1.0}}";
  source.text_name = "test";
  return load_scenario(source);
}
/// Clocked otherwise.
Scenario slowed(Scenario scenario, double factor) {
  scenario.gpu.clock.boost = scenario.gpu.clock.boost * factor;
  scenario.gpu.dram.bandwidth = scenario.gpu.dram.bandwidth * factor;
  return scenario;
}
std::string answer_of(Session& session, const Scenario& scenario) {
  return prediction_json(StepRun(session, scenario, "analytic").prediction()).dump();
}

bool same_program(const StepProgram& a, const StepProgram& b) {
  const auto same_action = [](const Action& x, const Action& y) {
    return x.kind == y.kind && x.host_class == y.host_class && x.stream == y.stream && x.index == y.index &&
           x.call == y.call;
  };
  const auto same_storage = [](const Storage& x, const Storage& y) {
    return x.bytes == y.bytes && x.category == y.category && x.layer == y.layer && x.stream == y.stream;
  };
  const auto same_range = [](const StepRange& x, const StepRange& y) { return x.begin == y.begin && x.end == y.end; };
  return std::equal(a.actions.begin(), a.actions.end(), b.actions.begin(), b.actions.end(), same_action) &&
         std::equal(a.storages.begin(), a.storages.end(), b.storages.begin(), b.storages.end(), same_storage) &&
         std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(), same_range) &&
         a.launches.size() == b.launches.size() && a.approximated == b.approximated;
}

TEST(SharedLayout, ChipsOfOtherSpeedsShareIt) {
  Session session;
  const Scenario scenario = scenario_for({"nvidia-h100-sxm5-80gb", "gpt2", 2});
  const StepRun fast(session, scenario, "analytic"), slow(session, slowed(scenario, 0.9), "analytic");
  EXPECT_EQ(fast.program().actions.data(), slow.program().actions.data());
  EXPECT_EQ(fast.program().storages.data(), slow.program().storages.data());
  EXPECT_NE(fast.step().time, slow.step().time);
  const StepProgram alone = make_program(slow.trace(), slow.scenario().gpu, slow.scenario().software);
  EXPECT_TRUE(same_program(slow.program(), alone));
}

TEST(SharedLayout, ChipsThatReserveOtherWorkspacesDoNot) {
  const auto of = [](const char* gpu) {
    Scenario scenario = scenario_for({gpu, "gpt2", 2});
    scenario.training.attention = AttentionRequest::eager;  // else each has an op trace of its own
    return scenario;
  };
  Session session;
  const StepRun hopper(session, of("nvidia-h100-sxm5-80gb"), "analytic"),
      ampere(session, of("nvidia-a100-sxm4-80gb"), "analytic");
  ASSERT_EQ(&hopper.trace(), &ampere.trace());
  EXPECT_NE(hopper.program().actions.data(), ampere.program().actions.data());
  EXPECT_FALSE(same_program(hopper.program(), ampere.program()));
  for (const StepRun* run : {&hopper, &ampere})
    EXPECT_TRUE(
        same_program(run->program(), make_program(run->trace(), run->scenario().gpu, run->scenario().software)));
}

TEST(SharedLayout, AnswersAreThoseOfASessionOfTheirOwn) {
  std::vector<Scenario> scenarios;
  for (const char* gpu : {"nvidia-h100-sxm5-80gb", "nvidia-v100-sxm2-16gb", "nvidia-h200-sxm-141gb", "nvidia-t4"})
    for (const char* model : {"gpt2", "bert-base"})
      for (const int micro_batch : {2, 3}) {
        scenarios.push_back(scenario_for({gpu, model, micro_batch}));
        scenarios.push_back(slowed(scenarios.back(), 0.8));
      }
  std::vector<std::string> alone;
  for (const Scenario& scenario : scenarios) {
    Session own;
    alone.push_back(answer_of(own, scenario));
  }
  Session shared;
  for (std::size_t i = 0; i < scenarios.size(); ++i) EXPECT_EQ(answer_of(shared, scenarios[i]), alone[i]) << i;
  for (std::size_t i = scenarios.size(); i-- > 0;) EXPECT_EQ(answer_of(shared, scenarios[i]), alone[i]) << i;
  Session busy;
  std::vector<std::string> answers(2 * scenarios.size());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t k = 0; k < scenarios.size(); ++k) {
        const std::size_t i = t == 0 ? k : scenarios.size() - 1 - k;
        answers[t * scenarios.size() + i] = answer_of(busy, scenarios[i]);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], alone[i % scenarios.size()]) << i;
}

TEST(SharedLayout, TracesOfOneNetworkShareTheListsThatTheirOptimizerWalks) {
  Session session;
  const std::shared_ptr<SharedTrace> first = session.trace(scenario_for({"nvidia-h100-sxm5-80gb", "gpt2", 2})),
                                     second = session.trace(scenario_for({"nvidia-h100-sxm5-80gb", "gpt2", 5}));
  EXPECT_EQ(&first->lists(), &second->lists());
  const ListOperands own(second->trace);
  std::size_t lists = 0;
  for (std::uint32_t call = 0; call < second->trace.calls.size(); ++call) {
    const ListOperands::OfCall *alone = own.of(call), *shared = second->lists().of(call);
    ASSERT_EQ(alone == nullptr, shared == nullptr) << call;
    if (alone == nullptr) continue;
    ++lists;
    EXPECT_EQ(alone->hash, shared->hash) << call;
    EXPECT_EQ(alone->inputs, shared->inputs) << call;
    EXPECT_EQ(alone->reads_once, shared->reads_once) << call;
    EXPECT_EQ(alone->before, shared->before) << call;
  }
  EXPECT_GT(lists, 0u);
}

// Traces of one network take the order of their records from each other, and layouts their actions.
TEST(SharedLayout, BatchesAndLengthsOfOneNetworkAnswerAsAlone) {
  Session shared;
  const std::uint64_t seed = testing_support::changing_seed();
  testing_support::Draws draws(seed);
  for (const char* training : {"precision: amp-fp16, attention: eager, gradient_clipping: 1.0",
                               "precision: fp32, optimizer: {name: adamw, implementation: fused}",
                               "precision: amp-bf16, gradient_accumulation: 12, activation_checkpointing: block"})
    for (const char* model : {"gpt2", "bert-base"})
      for (int i = 0; i < 6; ++i)
        for (const char* gpu : {"nvidia-h100-sxm5-80gb", "nvidia-t4"}) {
          const int micro_batch = 1 + static_cast<int>(draws.index(9)), length = 8 << draws.index(6);
          ScenarioSource source;
          source.text =
              fmt::format("{{hardware: {}, model: {}, training: {{micro_batch: {}, sequence_length: {}, {}}}}}", gpu,
                          model, micro_batch, length, training);
          source.text_name = "test";
          const Scenario scenario = load_scenario(source);
          Session own;
          ASSERT_EQ(answer_of(shared, scenario), answer_of(own, scenario))
              << source.text << " RIDGELINE_TEST_SEED=" << seed;
        }
}

}  // namespace
}  // namespace ridgeline

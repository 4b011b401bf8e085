// Hours, energy and price of all steps, and steps by each way to say how much is trained.
#include "sim/report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/scenario/step_amount.h"
#include "sim/scenario/whole_run.h"
#include "sim/units/user_error.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

Scenario scenario_with(const std::string& run, int gpus = 1) {
  const std::string where = gpus == 1
                                ? "hardware: nvidia-a100-sxm4-80gb\n"
                                : "cluster: {gpu: nvidia-a100-sxm4-80gb, nodes: 1, gpus: " + std::to_string(gpus) +
                                      ", interconnect: nvswitch}\n";
  return load_scenario({.file = {},
                        .text = where + "model: gpt2\ntraining: {micro_batch: 4, sequence_length: 128, " +
                                "gradient_accumulation: 2}\nrun: " + run + "\n",
                        .text_name = "run.yaml",
                        .overrides = {}});
}

double steps(const std::string& run, int gpus = 1) {
  const Scenario s = scenario_with(run, gpus);
  return steps_of(*s.run, amount_of_step(s));
}

TEST(RunReport, StepsCoverWhatIsTrained) {
  EXPECT_DOUBLE_EQ(steps("{steps: 1000}"), 1000.0);
  EXPECT_DOUBLE_EQ(steps("{examples: 800}"), 100.0);
  EXPECT_DOUBLE_EQ(steps("{examples: 801}"), 101.0) << "what is left takes a step";
  EXPECT_DOUBLE_EQ(steps("{examples: 800, epochs: 3}"), 300.0);
  EXPECT_DOUBLE_EQ(steps("{tokens: 1.024e6}"), 1000.0);
  EXPECT_DOUBLE_EQ(steps("{examples: 800}", 4), 25.0) << "four GPUs train four times as many a step";
}

TEST(RunReport, HoursEnergyAndPriceGrowWithStepsAndGpus) {
  Prediction p = made_prediction();
  p.step.time = Seconds{2.0}, p.step.low = Seconds{1.0}, p.step.high = Seconds{3.0};
  p.step.energy.energy = Joules{1000.0};
  const Scenario alone = scenario_with("{steps: 3600}");
  const auto one = run_json(alone, p);
  EXPECT_DOUBLE_EQ(one["time_s"], 7200.0);
  EXPECT_DOUBLE_EQ(one["low_s"], 3600.0);
  EXPECT_DOUBLE_EQ(one["high_s"], 10800.0);
  EXPECT_DOUBLE_EQ(one["gpu_hours"], 2.0);
  EXPECT_DOUBLE_EQ(one["energy_kwh"], 1.0);
  ASSERT_GT(alone.gpu.price_per_hour, 0.0);
  EXPECT_DOUBLE_EQ(one["usd"], 2.0 * alone.gpu.price_per_hour);
  const auto four = run_json(scenario_with("{steps: 3600}", 4), p);
  EXPECT_DOUBLE_EQ(four["gpu_hours"], 8.0);
  EXPECT_DOUBLE_EQ(four["energy_kwh"], 4.0);
}

TEST(RunReport, TokensAreThoseOfWholeSteps) {
  EXPECT_DOUBLE_EQ(tokens_of_run(scenario_with("{examples: 801}")), 101.0 * 1024.0);
  EXPECT_DOUBLE_EQ(tokens_of_run(scenario_with("none")), 0.0);
}

TEST(RunReport, MistakesAreTold) {
  const auto told = [](const std::string& run) -> std::string {
    try {
      (void)scenario_with(run);
    } catch (const UserError& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_THAT(told("{}"), ::testing::HasSubstr("expected steps, tokens or examples"));
  EXPECT_THAT(told("{steps: 1, tokens: 2}"), ::testing::HasSubstr("expected steps, tokens or examples"));
  EXPECT_THAT(told("{steps: 1, epochs: 2}"), ::testing::HasSubstr("expected examples"));
  EXPECT_THAT(told("{examples: 0}"), ::testing::HasSubstr("run.examples"));
  EXPECT_EQ(told("none"), "taken");
}

}  // namespace
}  // namespace ridgeline

// What a way to train takes at least, from what a rank must hold and move; plan_test.cpp has them against predictions.
#include "sim/study/plan/plan_bounds.h"

#include <gtest/gtest.h>

#include "sim/memory/memory_run.h"
#include "sim/workload/load_model.h"

namespace ridgeline {
namespace {

Scenario bounded(const std::string& training) {
  ScenarioSource source;
  source.text =
      "{hardware: nvidia-h200-sxm-141gb, cluster: hgx-h200, model: {family: gpt2, layers: 4, heads: 4, hidden: 256, "
      "vocabulary: 4000, max_positions: 256}, training: {micro_batch: 4, sequence_length: 128, " +
      training + "}}";
  source.text_name = "test";
  return load_scenario(source);
}

/// Bytes a parameter, beyond what a rank holds of a training without any.
double bytes_a_parameter(const std::string& training) {
  const Scenario s = bounded(training);
  Scenario frozen = s;
  frozen.model.layers = 2;  // two blocks fewer
  const double fewer = static_cast<double>(parameter_count(s.model) - parameter_count(frozen.model));
  return static_cast<double>(least_memory(s, {}) - least_memory(frozen, {})) / fewer;
}

// Weights, gradients and the optimizer's two numbers, in the type that the precision keeps them in.
TEST(PlanBounds, StatesOfOneRankAreThoseOfItsPrecisionAndOptimizer) {
  EXPECT_NEAR(bytes_a_parameter("precision: fp32, optimizer: {name: adamw}, parallel: {data: 1}"), 4 + 4 + 8, 1e-3);
  EXPECT_NEAR(bytes_a_parameter("precision: amp-bf16, optimizer: {name: adam}, parallel: {data: 1}"), 4 + 4 + 8, 1e-3);
  EXPECT_NEAR(bytes_a_parameter("precision: bf16, optimizer: {name: adamw}, parallel: {data: 1}"), 2 + 2 + 4, 1e-3);
  EXPECT_NEAR(bytes_a_parameter("precision: fp32, optimizer: {name: sgd}, parallel: {data: 1}"), 4 + 4, 1e-3);
  EXPECT_NEAR(bytes_a_parameter("precision: fp32, optimizer: {name: sgd-momentum}, parallel: {data: 1}"), 4 + 4 + 4,
              1e-3);
}

// Of eight ranks fsdp keeps an eighth of everything; ZeRO-1's optimizer keeps an eighth of its states, beside weights,
// gradients and the buckets that these are sent in.
TEST(PlanBounds, ShardsDivideWhatTheyShard) {
  EXPECT_NEAR(bytes_a_parameter("precision: fp32, parallel: {data: 8, strategy: fsdp}"), 16.0 / 8, 1e-3);
  EXPECT_NEAR(bytes_a_parameter("precision: fp32, parallel: {data: 8, strategy: hsdp, replicate: 2}"), 16.0 / 4, 1e-3);
  EXPECT_NEAR(bytes_a_parameter("precision: fp32, parallel: {data: 8, strategy: zero1}"), 4 + 4 + 4 + 1, 1e-3);
  EXPECT_NEAR(bytes_a_parameter("precision: fp32, parallel: {data: 8, strategy: ddp}"), 4 + 4 + 4 + 8, 1e-3);
}

// Gradients lie where activations lay; where micro-batches are added up, they lie beside them.
TEST(PlanBounds, ActivationsAreHeldBesideGradientsOnlyWhereTheseStay) {
  MicroStep large;
  large.activations = 1e9;
  const auto held = [&](const char* training) {
    const Scenario s = bounded(training);
    return static_cast<double>(least_memory(s, large) - least_memory(s, {}));
  };
  const double gradients =
      4.0 * static_cast<double>(parameter_count(bounded("precision: fp32, parallel: {data: 1}").model));
  EXPECT_NEAR(held("precision: fp32, parallel: {data: 1}"), 0.97e9 - gradients, 2) << "the larger of both";
  EXPECT_NEAR(held("precision: fp32, gradient_accumulation: 4, parallel: {data: 1}"), 0.97e9, 2);
}

// Of equal work so many times: kernels of each micro-batch, the optimizer once.
TEST(PlanBounds, TimeGrowsWithMicroBatches) {
  MicroStep slow;
  slow.kernels = Seconds{1.0}, slow.first = Seconds{0.5}, slow.further = Seconds{0.5};
  const auto time = [&](const char* training) { return least_time(bounded(training), slow).value(); };
  const double one = time("precision: fp32, parallel: {data: 1}"),
               four = time("precision: fp32, gradient_accumulation: 4, parallel: {data: 1}");
  EXPECT_NEAR(four - one, 3 * 0.97, 1e-9);
  EXPECT_GT(one, 0.97);
  EXPECT_LT(one, 0.98) << "the optimizer of a small network";
  slow.first = Seconds{3.0};  // a host that is the limit
  EXPECT_NEAR(time("precision: fp32, parallel: {data: 1}"), 3 * 0.97, 1e-9);
  EXPECT_NEAR(time("precision: fp32, gradient_accumulation: 3, parallel: {data: 1}"), (3 + 2 * 0.5) * 0.97, 1e-9);
}

}  // namespace
}  // namespace ridgeline

// Properties of whole predictions: more of a resource is never slower, equal questions get equal answers.
#include "sim/answer/step_run.h"

#include <gtest/gtest.h>

#include <thread>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

Scenario scenario(const std::string& hardware, std::vector<config::Override> changes = {}) {
  ScenarioSource source;
  source.text =
      "{hardware: " + hardware +
      ", model: {family: gpt2, layers: 4, heads: 8, hidden: 512, vocabulary: 8000, max_positions: 512, dropout: 0.1}, "
      "training: {micro_batch: 8, sequence_length: 512, precision: fp32, attention: eager, gradient_clipping: 1.0}}";
  source.text_name = "test";
  source.overrides = std::move(changes);
  return load_scenario(source);
}
Seconds step(const std::string& hardware, std::vector<config::Override> changes = {}) {
  return predict(scenario(hardware, std::move(changes)), "analytic").step.time;
}

class EveryGpu : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryGpu, MoreOfAResourceIsNeverSlower) {
  const std::string gpu = GetParam();
  const Gpu described = load_gpu(gpu);
  const Seconds base = step(gpu);
  const double tolerance = 1.0 + 1e-9;
  const auto set = [&](const std::string& key, double value, const char* unit) {
    return step(gpu, {{"hardware." + key, std::to_string(value) + " " + unit, ""}});
  };
  EXPECT_LE(set("dram.bandwidth", described.dram.bandwidth.value() / 1e9 * 1.5, "GB/s").value(),
            base.value() * tolerance);
  EXPECT_LE(set("l2.capacity", described.l2.capacity.value() / kMiB * 2, "MiB").value(), base.value() * tolerance);
  EXPECT_LE(set("l2.read_bandwidth", described.l2.read_bandwidth.value() / 1e9 * 1.5, "GB/s").value(),
            base.value() * tolerance);
  EXPECT_LE(set("power.limit", described.power.limit.value() * 1.5, "W").value(), base.value() * tolerance);
  EXPECT_LE(step(gpu, {{"host.scale", "0.5", ""}}).value(), base.value() * tolerance);
}

TEST_P(EveryGpu, TheRooflineIsNeverAboveTheAnalyticKernels) {
  const Scenario s = scenario(GetParam());
  EXPECT_LE(predict(s, "roofline").step.gpu_busy.value(), predict(s, "analytic").step.gpu_busy.value());
}

TEST_P(EveryGpu, TheRooflinesRangeHoldsWhatKernelsTakeAndNotTenTimesThat) {
  const Scenario s = scenario(GetParam());
  const StepPrediction roofline = predict(s, "roofline").step, analytic = predict(s, "analytic").step;
  EXPECT_GE(roofline.high.value(), analytic.gpu_busy.value());
  EXPECT_LE(roofline.high.value(), 10.0 * analytic.time.value());
}

TEST_P(EveryGpu, MoreTokensTakeLongerAndNeedMoreMemory) {
  const Prediction small = predict(scenario(GetParam()), "analytic");
  const Prediction large = predict(scenario(GetParam(), {{"training.micro_batch", "16", ""}}), "analytic");
  EXPECT_GT(large.step.gpu_busy, small.step.gpu_busy);
  EXPECT_GT(large.memory.peak_allocated, small.memory.peak_allocated);
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string out = info.param;
  for (char& c : out)
    if (c == '-') c = '_';
  return out;
}
INSTANTIATE_TEST_SUITE_P(OfHw, EveryGpu, ::testing::ValuesIn(hardware_names()), test_name);

TEST(Prediction, IsTheSameToTheBitOnAnyThread) {
  const Scenario s = scenario("nvidia-a100-sxm4-40gb");
  const Prediction alone = predict(s, "analytic");
  std::vector<Prediction> together(4);
  std::vector<std::thread> threads;
  for (Prediction& p : together) threads.emplace_back([&] { p = predict(s, "analytic"); });
  for (std::thread& t : threads) t.join();
  for (const Prediction& p : together) {
    EXPECT_EQ(p.step.time, alone.step.time);
    EXPECT_EQ(p.step.high, alone.step.high);
    EXPECT_EQ(p.memory.peak_reserved, alone.memory.peak_reserved);
    EXPECT_EQ(p.limited_by, alone.limited_by);
  }
}

Prediction of_training(const std::string& hardware, const std::string& model, const std::string& precision,
                       const std::string& attention, const char* engine) {
  return predict(
      scenario(hardware,
               {{"model", model, ""}, {"training.precision", precision, ""}, {"training.attention", attention, ""}}),
      engine);
}

TEST(Prediction, MfuIsOverThePeakOfTheFastestUnitsThatTheStepUses) {
  const char* const dense = "{family: gpt2, layers: 2, heads: 12, hidden: 1920, vocabulary: 32, max_positions: 512}";
  const char* const sparse =
      "{family: gpt2, layers: 2, heads: 12, hidden: 1920, vocabulary: 32, max_positions: 512, weight_sparsity: "
      "\"2:4\"}";
  const auto share = [&](const char* model, const char* precision, const char* attention) {
    const Prediction p = of_training("nvidia-rtx-3090", model, precision, attention, "roofline");
    return p.step.mfu * p.step.time.value();
  };
  // Equal FLOPs by the model's definition: what is left is one over the peak. The CUDA cores of an RTX 3090, which run
  // its small products, have TF32's rate and 1,900 MHz where the tensor cores have 1,890.
  EXPECT_NEAR(share(dense, "tf32", "eager") / share(sparse, "tf32", "eager"), 2.0 * 1890.0 / 1900.0, 1e-9);
  // On an RTX 3090 three products of TF32 are slower than its CUDA cores, on an A100 faster.
  EXPECT_NEAR(share(dense, "fp32", "eager"), share(dense, "fp32", "efficient"), 1e-9 * share(dense, "fp32", "eager"));
  const auto on_a100 = [&](const char* attention) {
    const Prediction p = of_training("nvidia-a100-pcie-40gb", dense, "fp32", attention, "roofline");
    return p.step.mfu * p.step.time.value();
  };
  EXPECT_NEAR(on_a100("eager") / on_a100("efficient"), 156.0 / 3.0 / 19.5, 0.02);
}

TEST(Prediction, ADeviceTooSmallIsAnAnswerAndNotAnError) {
  const Prediction fits = predict(scenario("nvidia-t4"), "analytic");
  EXPECT_TRUE(fits.memory.fits);
  const double just_under = static_cast<double>(fits.memory.device_used) / kMiB - 64;
  const Prediction lacks = predict(
      scenario("nvidia-t4", {{"hardware.dram.capacity", std::to_string(just_under * 0.8) + " MiB", ""}}), "analytic");
  EXPECT_FALSE(lacks.memory.fits);
  ASSERT_TRUE(lacks.memory.out_of_memory.has_value());
  EXPECT_GT(lacks.memory.out_of_memory->missing_bytes, 0);
  EXPECT_GT(lacks.step.time, Seconds{0}) << "the time is still told";
}

TEST(Prediction, CudaGraphsTakeTheHostOutOfAHostBoundStep) {
  const std::vector<config::Override> tiny{{"training.micro_batch", "1", ""}, {"training.sequence_length", "16", ""}};
  std::vector<config::Override> graphs = tiny;
  graphs.push_back({"training.cuda_graphs", "true", ""});
  EXPECT_LT(step("nvidia-h200-sxm-141gb", graphs).value(), 0.5 * step("nvidia-h200-sxm-141gb", tiny).value());
}

TEST(Prediction, AnUnknownEngineIsTheUsersMistake) { EXPECT_THROW(predict(scenario("nvidia-t4"), "magic"), UserError); }

}  // namespace
}  // namespace ridgeline

// A tenth more of a resource: the right one helps, the others do not, and none of them harms.
#include "sim/answer/sensitivity.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "sim/answer/step_run.h"
#include "sim/hardware/load_host.h"
#include "sim/study/kernel_sensitivity.h"
#include "tests/support/random_kernel_cases.h"

namespace ridgeline {
namespace {

Sensitivity sensitivity_of(const Scenario& scenario) {
  Session session;
  return step_sensitivity(StepRun(session, scenario, "analytic"));
}

Sensitivity of_case(const char* text, const char* hardware = "nvidia-h200-sxm-141gb") {
  return kernel_sensitivity(kernel_case_from(nlohmann::json::parse(text)), load_gpu(hardware),
                            load_software("pytorch-2.11"), "analytic");
}

/// Of sums of times.
constexpr double kRounding = 1e-9;

TEST(KernelSensitivity, a_stream_is_as_fast_as_the_dram) {
  const Sensitivity s = of_case(R"({"op":"add","dtype":"bf16","params":{"rows":65536,"cols":8192}})");
  EXPECT_NEAR(s.share(Resource::dram_bandwidth), 1.0 - 1.0 / 1.1, 0.015);  // other pipes are busy half of the time
  EXPECT_EQ(s.share(Resource::tensor_throughput), 0.0);
  EXPECT_LT(s.share(Resource::fma_throughput), 0.01);
}

TEST(KernelSensitivity, a_large_product_is_as_fast_as_the_tensor_cores_and_its_board_lets_it_be) {
  const char* product = R"({"op":"mm","dtype":"bf16","params":{"m":4096,"n":4096,"k":4096,"layout":"nt"}})";
  const Sensitivity s = of_case(product);
  EXPECT_GT(s.share(Resource::tensor_throughput), 0.05);
  EXPECT_LT(s.share(Resource::dram_bandwidth), 0.01);
  EXPECT_EQ(s.share(Resource::host_speed), 0.0);
  // This one settles at the power limit: power helps most, and more tensor cores by the voltage of the lower clock that
  // they then run at.
  const Sensitivity capped =
      of_case(R"({"op":"mm","dtype":"bf16","params":{"m":65536,"n":32768,"k":32768,"layout":"nt"}})");
  EXPECT_GT(capped.share(Resource::power_limit), 0.03);
  EXPECT_LT(capped.share(Resource::tensor_throughput), s.share(Resource::tensor_throughput));
}

TEST(KernelSensitivity, a_tiny_kernel_gains_from_shorter_latencies_alone) {
  const Sensitivity s = of_case(R"({"op":"add","dtype":"fp32","params":{"rows":4,"cols":64}})");
  EXPECT_GT(s.share(Resource::latency), 0.05);
  EXPECT_LT(s.share(Resource::dram_bandwidth), 0.01);
  EXPECT_EQ(s.share(Resource::sm_count), 0.0);
}

TEST(KernelSensitivity, what_the_l2_nearly_holds_gains_from_a_larger_one) {
  const Sensitivity s =
      of_case(R"({"op":"add","dtype":"bf16","params":{"rows":4096,"cols":1024},"input_sets":2})");  // 40 of 60 MiB
  EXPECT_GT(s.share(Resource::l2_capacity), 0.02);
  EXPECT_GT(s.share(Resource::l2_capacity), s.share(Resource::dram_bandwidth));
}

TEST(KernelSensitivity, nothing_more_ever_harms_whatever_the_kernel_and_the_gpu) {
  const Software software = load_software("pytorch-2.11");
  const auto cases = ridgeline::testing::RandomKernelCases(20260221).of_every_op(4);
  int asked = 0, harmed = 0;  // by more SMs: PyTorch's own rules cut some kernels by them
  for (const std::string& name : hardware_names()) {
    const Gpu gpu = load_gpu(name);
    for (const ridgeline::testing::NamedCase& c : cases) {
      try {
        const Sensitivity s = kernel_sensitivity(c.kernel, gpu, software, "analytic");
        for (const Resource resource : kResources) {
          ++asked;
          // At the power limit a kernel that waits less runs at a lower clock (measurements/DEVIATIONS.md).
          constexpr double kAtTheLimit = 0.003;
          // Blocks of a causal mask are of many lengths: one a step later can end the last round later.
          constexpr double kOfRounds = 0.02;
          const bool causal = c.text.find("\"causal\":true") != std::string::npos;
          if (resource == Resource::sm_count) harmed += s.share(resource) < -0.005 ? 1 : 0;
          else if (causal && s.share(resource) < -kAtTheLimit && s.share(resource) >= -kOfRounds) ++harmed;
          else EXPECT_GE(s.share(resource), -kAtTheLimit) << name_of(resource) << " " << name << " " << c.text;
          EXPECT_LE(s.share(resource), 0.5) << name_of(resource) << " " << name << " " << c.text;
        }
      } catch (const std::invalid_argument&) {
        continue;  // an attention kernel that this GPU does not have
      }
    }
  }
  RecordProperty("harmed", harmed);
  std::printf("harmed %d of %d\n", harmed, asked);
  EXPECT_LE(harmed, 0.002 * asked) << "measurements/DEVIATIONS.md";
}

Scenario step_on(const std::string& hardware, const std::string& batch, std::vector<config::Override> more = {}) {
  ScenarioSource source;
  source.text =
      "{hardware: " + hardware +
      ", model: {family: gpt2, layers: 4, heads: 8, hidden: 512, vocabulary: 8000, max_positions: 512, dropout: 0.1}, "
      "training: {micro_batch: " +
      batch + ", sequence_length: 512, precision: fp32, attention: eager}}";
  source.text_name = "test";
  source.overrides = std::move(more);
  return load_scenario(source);
}

TEST(StepSensitivity, is_the_difference_of_two_predictions) {
  const Sensitivity s = sensitivity_of(step_on("nvidia-h200-sxm-141gb", "32"));
  const Prediction now = predict(step_on("nvidia-h200-sxm-141gb", "32"), "analytic");
  EXPECT_DOUBLE_EQ(s.time.value(), now.step.time.value());
  const Prediction then =
      predict(step_on("nvidia-h200-sxm-141gb", "32", {{"hardware.dram.bandwidth", "5.28 TB/s", ""}}), "analytic");
  EXPECT_NEAR(s.saved_by(Resource::dram_bandwidth).value(), (now.step.time - then.step.time).value(),
              1e-3 * now.step.time.value());
  EXPECT_GT(s.saved_by(Resource::dram_bandwidth).value(), 0.01 * now.step.time.value());
}

TEST(StepSensitivity, every_number_of_the_file_is_asked_about_and_losses_are_shown) {
  const Scenario scenario = step_on("nvidia-h200-sxm-141gb", "32");
  const Sensitivity s = sensitivity_of(scenario);
  std::size_t numbers = 0;
  for (const HardwareKey& key : hardware_keys()) numbers += key.is_number() && key.get(scenario.gpu) != 0.0 ? 1 : 0;
  EXPECT_EQ(s.keys.size(), numbers);
  const auto saved = [&s](std::string_view name) {
    for (const KeyGain& gain : s.keys)
      if (gain.key->key == name) return gain.saved.value();
    return 0.0;
  };
  EXPECT_GT(saved("dram.bandwidth"), 0.0);
  EXPECT_LT(saved("launch.kernel_fixed"), 0.0);
  EXPECT_LT(saved("dram.turnaround"), 0.0);
  EXPECT_EQ(saved("context.driver"), 0.0);
}

TEST(StepSensitivity, a_step_that_waits_for_the_host_gains_from_the_host_alone) {
  const Sensitivity waits = sensitivity_of(step_on("nvidia-h200-sxm-141gb", "1"));
  EXPECT_NEAR(waits.share(Resource::host_speed), 1.0 - 1.0 / 1.1, 0.01);
  EXPECT_LT(waits.share(Resource::dram_bandwidth), 0.001);
  const Sensitivity busy = sensitivity_of(step_on("nvidia-t4", "16"));
  EXPECT_LT(busy.share(Resource::host_speed), 0.001);
}

TEST(StepSensitivity, nothing_more_ever_harms_a_step_on_any_gpu) {
  for (const std::string& name : hardware_names()) {
    for (const char* batch : {"1", "24"}) {
      const Sensitivity s = sensitivity_of(step_on(name, batch));
      double most = 0.0;
      for (const Resource resource : kResources) {
        EXPECT_GE(s.share(resource), -kRounding) << name_of(resource) << " " << name << " " << batch;
        most = std::max(most, s.share(resource));
      }
      EXPECT_GT(most, 0.005) << name << " " << batch;
    }
  }
}

}  // namespace
}  // namespace ridgeline

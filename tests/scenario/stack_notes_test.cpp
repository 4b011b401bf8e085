// Stacks that cannot exist, and precisions without a unit, are said.
#include "sim/scenario/stack_notes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/answer/step_run.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Scenario scenario(const std::string& hardware, const std::string& precision,
                  const std::vector<config::Override>& more = {}) {
  ScenarioSource source;
  source.overrides = {{"hardware", hardware, ""},
                      {"model", "gpt2", ""},
                      {"model.layers", "2", ""},
                      {"training.micro_batch", "4", ""},
                      {"training.sequence_length", "256", ""},
                      {"training.precision", precision, ""}};
  source.overrides.insert(source.overrides.end(), more.begin(), more.end());
  return load_scenario(source);
}

TEST(StackNotes, software_without_code_for_the_chip_is_said_and_not_validated) {
  const Prediction old =
      predict(scenario("nvidia-h100-sxm5-80gb", "fp32", {{"software", "pytorch-1.13", ""}}), "analytic");
  EXPECT_THAT(old.notes, Contains(AllOf(HasSubstr("no code for compute capability 9.0"), HasSubstr("3.7 to 8.9"))));
  EXPECT_FALSE(old.step.validated);
  const Prediction now = predict(scenario("nvidia-h100-sxm5-80gb", "fp32"), "analytic");
  EXPECT_THAT(now.notes, Not(Contains(HasSubstr("no code for"))));
  EXPECT_TRUE(now.step.validated);
  const Scenario volta = scenario("nvidia-v100-sxm2-32gb", "fp32");
  EXPECT_EQ(volta.software.name, "pytorch-2.11-cuda-12.6");
  EXPECT_THAT(predict(volta, "analytic").notes, Not(Contains(HasSubstr("no code for"))));
  const Scenario named = scenario("nvidia-v100-sxm2-32gb", "fp32", {{"software", "pytorch-2.11", ""}});
  EXPECT_THAT(predict(named, "analytic").notes, Contains(HasSubstr("--software pytorch-2.11-cuda-12.6 has it")));
}

// A key of another wrapper is taken, changes nothing, and is named.
TEST(StackNotes, keys_of_another_wrapper_are_said) {
  const auto notes = [](const char* strategy, std::vector<config::Override> more) {
    ScenarioSource source;
    source.overrides = {{"cluster", "h200-x4", ""},
                        {"model", "gpt2", ""},
                        {"training.micro_batch", "1", ""},
                        {"training.sequence_length", "128", ""},
                        {"training.parallel.strategy", strategy, ""}};
    source.overrides.insert(source.overrides.end(), more.begin(), more.end());
    return notes_of_stack(load_scenario(source)).notes;
  };
  const config::Override cap{"training.parallel.bucket_cap", "10 MiB", ""},
      keep{"training.parallel.reshard_after_forward", "false", ""},
      along{"training.parallel.sequence_parallel", "true", ""};
  EXPECT_THAT(notes("ddp", {cap}), IsEmpty());
  EXPECT_THAT(notes("zero1", {cap}), IsEmpty());
  EXPECT_THAT(notes("fsdp", {keep}), IsEmpty());
  EXPECT_THAT(notes("ddp", {keep, along}), ElementsAre(HasSubstr("reshard_after_forward, sequence_parallel")));
  EXPECT_THAT(notes("fsdp", {cap}), ElementsAre(AllOf(HasSubstr("bucket_cap"), Not(HasSubstr("reshard")))));
}

TEST(StackNotes, torch_compile_before_it_was_there_is_said) {
  const Prediction p = predict(
      scenario("nvidia-a100-pcie-80gb", "fp32", {{"software", "pytorch-1.13", ""}, {"training.compile", "true", ""}}),
      "analytic");
  EXPECT_THAT(p.notes, Contains(HasSubstr("has no torch.compile")));
  EXPECT_FALSE(p.step.validated);
}

TEST(StackNotes, kernels_of_a_later_cuda_are_said) {
  const Prediction p =
      predict(scenario("nvidia-h100-sxm5-80gb", "amp-bf16", {{"software", "pytorch-2.0", ""}}), "analytic");
  EXPECT_THAT(p.notes, Contains(HasSubstr("measured on Hopper with CUDA 13")));
  EXPECT_FALSE(p.step.validated);
}

TEST(Units, tf32_without_units_is_fp32_on_every_engine_and_said) {
  for (const char* gpu : {"nvidia-v100-sxm2-16gb", "nvidia-t4"})
    for (const char* engine : {"analytic", "simulate", "roofline"}) {
      const Prediction tf32 = predict(scenario(gpu, "tf32"), engine), fp32 = predict(scenario(gpu, "fp32"), engine);
      EXPECT_TRUE(std::isfinite(tf32.step.time.value())) << gpu << " " << engine;
      EXPECT_DOUBLE_EQ(tf32.step.gpu_busy.value(), fp32.step.gpu_busy.value()) << gpu << " " << engine;
      EXPECT_THAT(tf32.notes, Contains(HasSubstr("no TF32 units"))) << gpu;
      EXPECT_THAT(fp32.notes, Not(Contains(HasSubstr("no TF32 units")))) << gpu;
    }
  EXPECT_THAT(predict(scenario("nvidia-h200-sxm-141gb", "tf32"), "analytic").notes,
              Not(Contains(HasSubstr("no TF32 units"))));
}

TEST(Units, bf16_without_units_runs_on_the_cuda_cores_uncompiled_and_is_said) {
  const Scenario compiled = scenario("nvidia-t4", "bf16", {{"training.compile", "true", ""}});
  EXPECT_FALSE(compiles(compiled));
  const Prediction p = predict(compiled, "analytic"), eager = predict(scenario("nvidia-t4", "bf16"), "analytic");
  EXPECT_EQ(p.step.time.value(), eager.step.time.value());
  EXPECT_THAT(p.notes, AllOf(Contains(HasSubstr("no bf16 units")), Contains(HasSubstr("leaves bf16 uncompiled"))));
  for (const KernelGroup& kernel : p.kernels) EXPECT_FALSE(kernel.on_tensor_cores) << kernel.name;
  EXPECT_TRUE(compiles(scenario("nvidia-a100-pcie-80gb", "bf16", {{"training.compile", "true", ""}})));
}

TEST(Validated, a_changed_chip_is_not_and_its_range_is_wider) {
  const Prediction now = predict(scenario("nvidia-h200-sxm-141gb", "amp-bf16"), "analytic");
  EXPECT_TRUE(now.step.validated);
  const Prediction then =
      predict(scenario("nvidia-h200-sxm-141gb", "amp-bf16",
                       {{"hardware.sm.count", "1320", ""}, {"hardware.dram.bandwidth", "48 TB/s", ""}}),
              "analytic");
  EXPECT_FALSE(then.step.validated);
  EXPECT_THAT(then.notes, Contains(HasSubstr("No GPU with these numbers was measured; H200 SXM 141GB is the nearest")));
}

TEST(Rotary, an_odd_head_dimension_is_refused_in_words) {
  for (const char* heads : {"8", "1"}) {
    const std::string model =
        fmt::format("{{family: llama, layers: 1, heads: {}, hidden: {}, vocabulary: 100, max_positions: 512}}", heads,
                    heads[0] == '8' ? 8 : 3);
    try {
      scenario("nvidia-h200-sxm-141gb", "bf16", {{"model", model, ""}, {"model.layers", "1", ""}});
      ADD_FAILURE() << "accepted " << model;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr("must be even"));
    }
  }
}

}  // namespace
}  // namespace ridgeline

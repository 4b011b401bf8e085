// Which changes a step is worth trying with: those that its GPU can run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/answer/changes.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Not;

std::vector<std::string> changes(const std::string& hardware, const std::string& precision) {
  ScenarioSource source;
  source.text = "{hardware: " + hardware +
                ", model: bert-base, training: {micro_batch: 8, sequence_length: 128, "
                "precision: " +
                precision + ", optimizer: {name: adamw}}}";
  source.text_name = "test";
  std::vector<std::string> sets;
  for (const Change& change : time_changes(load_scenario(source), {})) {
    EXPECT_FALSE(change.why.empty()) << change.set;
    sets.push_back(change.set);
  }
  return sets;
}

TEST(TimeChanges, PrecisionsAreThoseOfTheGpusTensorCores) {
  const std::string key = "training.precision=";
  EXPECT_THAT(changes("nvidia-a100-sxm4-80gb", "fp32"),
              AllOf(Contains(key + "tf32"), Contains(key + "amp-bf16"), Not(Contains(key + "amp-fp16"))));
  EXPECT_THAT(changes("nvidia-a100-sxm4-80gb", "tf32"), AllOf(Not(Contains(key + "tf32")), Contains(key + "amp-bf16")));
  EXPECT_THAT(changes("nvidia-v100-sxm2-16gb", "fp32"),
              AllOf(Contains(key + "amp-fp16"), Not(Contains(key + "tf32")), Not(Contains(key + "amp-bf16"))));
  EXPECT_THAT(changes("nvidia-a100-sxm4-80gb", "amp-bf16"),
              AllOf(Not(Contains(key + "tf32")), Not(Contains(key + "amp-bf16")), Not(Contains(key + "amp-fp16"))));
}

TEST(TimeChanges, ApplyWhatTheySay) {
  ScenarioSource source;
  source.text =
      "{hardware: nvidia-a100-sxm4-80gb, model: gpt2, training: {micro_batch: 2, sequence_length: 128, "
      "gradient_accumulation: 4, precision: fp32, attention: eager, activation_checkpointing: block, "
      "optimizer: {name: adamw}}}";
  source.text_name = "test";
  const Scenario asked = load_scenario(source);
  std::vector<Change> all = time_changes(asked, {});
  for (Change& change : memory_changes(asked)) all.push_back(std::move(change));
  EXPECT_GE(all.size(), 6U);
  for (const Change& change : all) {
    Scenario applied = asked;
    change.apply(applied);
    ScenarioSource set = source;
    for (std::size_t begin = 0; begin < change.set.size();) {
      const std::size_t end = std::min(change.set.find(' ', begin), change.set.size());
      set.overrides.push_back(config::parse_override(change.set.substr(begin, end - begin)));
      begin = end + 1;
    }
    const Scenario told = load_scenario(set);
    EXPECT_EQ(applied.model.vocabulary, told.model.vocabulary) << change.set;
    EXPECT_EQ(applied.training.precision, told.training.precision) << change.set;
    EXPECT_EQ(applied.training.attention, told.training.attention) << change.set;
    EXPECT_EQ(applied.training.micro_batch, told.training.micro_batch) << change.set;
    EXPECT_EQ(applied.training.gradient_accumulation, told.training.gradient_accumulation) << change.set;
    EXPECT_EQ(applied.training.activation_checkpointing, told.training.activation_checkpointing) << change.set;
    EXPECT_EQ(applied.training.optimizer.kind, told.training.optimizer.kind) << change.set;
    EXPECT_EQ(applied.training.optimizer.implementation, told.training.optimizer.implementation) << change.set;
  }
}

}  // namespace
}  // namespace ridgeline

// Flags that are short for keys, both ways, and the precision of large networks that nobody named.
#include "sim/scenario/short_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> sets_of(const ShortFlag& flag, bool inference) {
  std::vector<std::string> sets;
  for (const config::Override& change : changes_of(flag, "7", inference))
    sets.push_back(change.key + "=" + change.value);
  return sets;
}

TEST(ShortFlags, WhatAFlagChangesIsWrittenAsTheFlag) {
  for (const ShortFlag& flag : short_flags()) {
    const std::string typed = std::string(flag.flag) + (flag.has_value() ? " 7" : "");
    const std::vector<std::string> sets = sets_of(flag, flag.means_inference());
    ASSERT_FALSE(sets.empty()) << flag.flag;
    // One key, two flags: --seq of a model in use is its --prompt.
    if (flag.flag == "--prompt") EXPECT_EQ(as_flags(sets), "--seq 7");
    else EXPECT_EQ(as_flags(sets), typed);
  }
}

TEST(ShortFlags, ChangesWithoutAFlagAreSetAndThoseOfGpusAreOneWord) {
  const std::vector<std::string> sets{"training.precision=bf16 hardware.sm.count=4", "training.parallel.data=2",
                                      "training.parallel.strategy=zero2"};
  EXPECT_EQ(as_flags(sets), "--precision bf16 --parallel data=2,strategy=zero2 --set hardware.sm.count=4");
  EXPECT_EQ(as_flags({}), "");
}

TEST(ShortFlags, AFlagOfTrainingIsRefusedBesideAModelInUse) {
  for (const ShortFlag& flag : short_flags()) {
    if (flag.inference.empty()) {
      EXPECT_THROW(changes_of(flag, "7", true), UserError) << flag.flag;
    } else {
      for (const std::string& set : sets_of(flag, true)) EXPECT_EQ(set.find("training."), set.npos) << set;
    }
  }
}

TEST(ShortFlags, EachHasAnExampleWhereItHasAValueAndIsFoundByItsKey) {
  std::set<std::string> known;
  for (const ShortFlag& flag : short_flags()) {
    EXPECT_TRUE(known.insert(std::string(flag.flag)).second) << flag.flag;
    EXPECT_EQ(flag.has_value(), !flag.example.empty()) << flag.flag;
    for (const config::Override& change : changes_of(flag, flag.example, flag.means_inference())) {
      const ShortFlag* found = flag_of_key(change.key);
      ASSERT_NE(found, nullptr) << change.key;
      // One key, two flags: --qlora has LoRA's rank too, and --prompt is --seq of a model in use.
      if (flag.flag == "--qlora" || flag.flag == "--prompt") continue;
      EXPECT_EQ(found->flag, flag.flag) << change.key;
    }
  }
  EXPECT_EQ(flag_of_key("training.loss_code"), nullptr);
}

Scenario asked(const std::string& model, const std::string& gpu, const std::string& training) {
  ScenarioSource source;
  source.text = "model: " + model + "\n" + gpu + "\ntraining: {micro_batch: 1, sequence_length: 128" + training + "}\n";
  source.text_name = "test";
  return load_scenario(source);
}

TEST(PrecisionThatNobodyNamed, IsBf16AboveABillionParameters) {
  const std::string gpu = "hardware: nvidia-rtx-3090", cluster = "cluster: hgx-h100";
  struct Case {
    std::string model, gpu, training;
    Precision precision;
    bool assumed;
  };
  for (const Case& one : {Case{"llama-3-8b", gpu, "", Precision::bf16, true},
                          Case{"gpt2-large", gpu, "", Precision::fp32, true},  // 774 million
                          Case{"gpt2-xl", gpu, "", Precision::bf16, true},     // 1.56 billion
                          Case{"llama-3-8b", gpu, ", precision: fp32", Precision::fp32, false},
                          Case{"llama-3-8b", gpu, ", tf32: true", Precision::tf32, true},
                          Case{"llama-3-8b", gpu, ", weight_dtype: bf16", Precision::amp_bf16, true},
                          Case{"llama-3-8b", "hardware: nvidia-t4", "", Precision::fp32, true},  // has no bf16
                          Case{"llama-3-8b", cluster, ", parallel: {framework: deepspeed, strategy: zero2}",
                               Precision::amp_bf16, true}}) {
    const Scenario s = asked(one.model, one.gpu, one.training);
    EXPECT_EQ(s.training.precision, one.precision) << one.model << one.gpu << one.training;
    EXPECT_EQ(s.assumes_precision, one.assumed) << one.model << one.gpu << one.training;
  }
}

TEST(PrecisionThatNobodyNamed, HoldsForAModelInUseToo) {
  ScenarioSource source;
  source.text = "model: llama-3-8b\nhardware: nvidia-rtx-3090\ninference: {prompt_length: 128}\n";
  source.text_name = "test";
  EXPECT_EQ(load_scenario(source).training.precision, Precision::bf16);
}

}  // namespace
}  // namespace ridgeline

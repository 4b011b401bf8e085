// The two TF32 switches, as PyTorch has them: matmuls off, convolutions on, unless a script says otherwise.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/answer/memory_prediction.h"
#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"

namespace ridgeline::tf32_switches_test {
namespace {

using ::testing::HasSubstr;

Scenario scenario(const std::string& training, const std::string& more = "", const char* model = "bert-base") {
  return load_scenario(
      {.file = {},
       .text = fmt::format("hardware: nvidia-h200-sxm-141gb\nmodel: {}\n{}training: {{micro_batch: 1, "
                           "optimizer: adamw{}{}}}\n",
                           model, more, model == std::string("vit-large") ? "" : ", sequence_length: 64", training),
       .text_name = "tf32.yaml",
       .overrides = {}});
}

TEST(Tf32Switches, matmuls_follow_the_default_of_the_version_where_precision_says_nothing_of_them) {
  for (const char* precision : {"amp-bf16", "amp-fp16", "bf16"}) {
    const std::string said = fmt::format(", precision: {}", precision);
    EXPECT_FALSE(scenario(said).training.tf32) << precision;
    EXPECT_TRUE(scenario(said + ", tf32: true").training.tf32) << precision;
  }
  for (const auto& [software, on] :
       std::initializer_list<std::pair<const char*, bool>>{{"pytorch-1.10", true}, {"pytorch-1.13", false}})
    EXPECT_EQ(load_scenario({.file = {},
                             .text = fmt::format("hardware: nvidia-a100-sxm4-40gb\nmodel: bert-base\nsoftware: {}\n"
                                                 "training: {{micro_batch: 1, sequence_length: 64, attention: eager, "
                                                 "precision: amp-fp16, optimizer: adamw}}\n",
                                                 software),
                             .text_name = "tf32.yaml",
                             .overrides = {}})
                  .training.tf32,
              on)
        << software;
}

TEST(Tf32Switches, fp32_with_the_switch_on_is_precision_tf32) {
  EXPECT_EQ(scenario("").training.precision, Precision::fp32);
  EXPECT_EQ(scenario(", tf32: true").training.precision, Precision::tf32);
  EXPECT_TRUE(scenario(", precision: tf32").training.tf32);
  try {
    (void)scenario(", precision: tf32, tf32: false");
    ADD_FAILURE() << "both at once";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("contradicts precision: tf32"));
  }
}

/// Types of what multiplies in the step: matmuls, convolutions, attention.
template <typename Kind>
std::set<DType> types_of(const Scenario& s) {
  std::set<DType> types;
  for (const Op& op : trace_of(s, "analytic").ops)
    if (const auto* of = std::get_if<Kind>(&op)) types.insert(of->type);
  return types;
}

TEST(Tf32Switches, each_reaches_its_own_operations_and_attention_follows_neither) {
  using Types = std::set<DType>;
  const Types fp32{DType::fp32}, tf32{DType::tf32};
  for (const auto& [said, matmuls, convolutions] :
       std::initializer_list<std::tuple<const char*, Types, Types>>{{"", fp32, tf32},
                                                                    {", tf32: true", tf32, tf32},
                                                                    {", cudnn_tf32: false", fp32, fp32},
                                                                    {", tf32: true, cudnn_tf32: false", tf32, fp32}}) {
    const Scenario s = scenario(said, "", "vit-large");
    EXPECT_EQ(types_of<Matmul>(s), matmuls) << said;
    EXPECT_EQ(types_of<Convolution>(s), convolutions) << said;
    EXPECT_EQ(types_of<Attention>(s), fp32) << said;
  }
}

}  // namespace
}  // namespace ridgeline::tf32_switches_test

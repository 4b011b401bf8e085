// Which parts of a composed network go together: each set of keys is taken, and refused with any one of the changes
// beside it.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sim/config/parse_yaml.h"
#include "sim/workload/load_model.h"

namespace ridgeline {
namespace {

using Keys = std::map<std::string, std::string>;

struct Rule {
  Keys taken;
  std::vector<Keys> refused{};
};

/// What is said against a network with these keys; "": nothing.
std::string said_against(const Keys& keys) {
  Keys all{{"family", "composed"}, {"layers", "2"}, {"heads", "8"}, {"hidden", "64"}, {"vocabulary", "100"}};
  for (const auto& [key, value] : keys) all[key] = value;
  std::string yaml;
  for (const auto& [key, value] : all) yaml += (yaml.empty() ? "{" : ", ") + key + ": " + value;
  try {
    load_model(config::Value(config::parse_yaml(yaml + "}", "m.yaml")));
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "";
}

const Keys& of_images() {
  static const Keys keys{{"input", "image"},
                         {"image_size", "64"},
                         {"patch", "8"},
                         {"class_token", "true"},
                         {"head", "image-classification"},
                         {"pooler", "first-token"},
                         {"labels", "5"},
                         {"causal", "false"},
                         {"positions", "learned"},
                         {"tie_embeddings", "false"}};
  return keys;
}
Keys with(Keys keys, const Keys& more) {
  for (const auto& [key, value] : more) keys[key] = value;
  return keys;
}

std::vector<Rule> rules() {
  return {
      {{{"relative_in_place", "true"},
        {"positions", "relative"},
        {"attention_code", "written-out"},
        {"causal", "false"}},
       {{{"positions", "none"}}, {{"attention_code", "fused"}}, {{"causal", "true"}}}},
      {{{"relative_each_layer", "true"}, {"positions", "relative"}},
       {{{"positions", "none"}},
        {{"relative_in_place", "true"}, {"attention_code", "written-out"}, {"causal", "false"}}}},
      {{{"parts_selected", "true"}, {"projection", "fused-by-head"}},
       {{{"projection", "fused"}}, {{"key_value_heads", "4"}}}},
      {{{"queries_by_position", "true"}, {"positions", "rotary"}}, {{{"positions", "none"}}}},
      {{{"token_dropout", "true"}}},
      {{{"router_correction", "true"}, {"experts", "4"}, {"experts_per_token", "2"}}, {{{"router", "sparse-mixer"}}}},
      {{{"turned_in_place", "true"}, {"positions", "rotary"}, {"rotary_style", "pairs"}},
       {{{"positions", "none"}},
        {{"rotary_style", "halves"}},
        {{"query_key_norm", "head"}},
        {{"projection", "fused"}}}},
      {{{"projection", "fused-groups"},
        {"turned_in_place", "true"},
        {"positions", "rotary"},
        {"rotary_style", "pairs"}},
       {{{"turned_in_place", "false"}}, {{"heads", "2"}}, {{"key_value_heads", "4"}}}},
      {{{"projection", "fused-groups"},
        {"turned_in_place", "true"},
        {"positions", "rotary"},
        {"rotary_style", "pairs"},
        {"heads", "4"}}},
      {{{"attention_code", "written-out-flat"}},
       {{{"key_value_heads", "4"}},
        {{"sinks", "true"}},
        {{"score_cap", "30"}},
        {{"positions", "alibi"}},
        {{"mask_filled", "true"}}}},
      {{{"router", "sparse-mixer"}, {"experts", "4"}, {"experts_per_token", "2"}},
       {{{"experts_per_token", "1"}},
        {{"experts_per_token", "3"}},
        {{"router_bias", "true"}},
        {{"router_fp32", "true"}}}},
      {{{"query_key_norm", "width"}}, {{{"projection", "fused"}}}},
      {{{"query_key_norm", "head"}, {"projection", "fused"}}},
      {{{"residual", "parallel"}},
       {{{"layer_scale", "true"}}, {{"residual_scale", "true"}}, {{"drop_path", "0.1"}}, {{"norm_place", "post"}}}},
      {{{"residual", "parallel-two-norms"}}, {{{"norm_place", "both"}}}},
      {{{"layer_scale", "true"}, {"drop_path", "0.1"}}},
      {{{"first_norm", "false"}}, {{{"norm_place", "post"}}, {{"norm_place", "after"}}}},
      {{{"first_norm", "false"}, {"norm_place", "both"}}},
      {{{"positions", "rotary"}, {"rotary_share", "0.25"}}, {{{"rotary_share", "0.125"}}}},
      {{{"positions", "rotary"}, {"rotary_width", "8"}}, {{{"rotary_width", "10"}}, {{"rotary_width", "7"}}}},
      {{{"experts", "4"}, {"experts_per_token", "4"}}, {{{"experts_per_token", "5"}}}},
      {{{"key_value_heads", "2"}}, {{{"key_value_heads", "3"}}}},
      {{{"layer_groups", "2"}}, {{{"layer_groups", "3"}}}},
      {{{"positions", "learned"}, {"max_positions", "64"}}, {{{"max_positions", "0"}}}},
      {{{"positions", "sinusoidal"}, {"max_positions", "64"}}},
      {{{"head_dim", "8"}, {"hidden", "60"}}, {{{"head_dim", "0"}}}},
      {of_images(),
       {{{"extra_tokens", "1"}, {"class_token", "false"}, {"pooler", "dense-tanh"}},
        {{"patch", "0"}},
        {{"image_size", "0"}}}},
      {with(of_images(), {{"extra_tokens", "1"}})},
      {with(of_images(), {{"extra_tokens", "1"}, {"late_tokens", "true"}}), {{{"extra_tokens", "0"}}}},
  };
}

TEST(CompositionRules, EachPartIsRefusedWithWhatItDoesNotGoWith) {
  for (const Rule& rule : rules()) {
    EXPECT_EQ(said_against(rule.taken), "") << ::testing::PrintToString(rule.taken);
    for (const Keys& change : rule.refused)
      EXPECT_NE(said_against(with(rule.taken, change)), "")
          << ::testing::PrintToString(rule.taken) << ::testing::PrintToString(change);
  }
}

}  // namespace
}  // namespace ridgeline

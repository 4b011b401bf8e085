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
      {{{"code", "plain"}, {"positions", "rotary"}, {"rotary_style", "complex"}},
       {{{"code", "transformers"}}, {{"rotary_share", "0.5"}}}},
      {{{"code", "plain"}, {"mask_filled", "true"}, {"max_positions", "64"}}, {{{"max_positions", "0"}}}},
      {{{"sequence_first", "true"}, {"causal", "false"}, {"positions", "learned"}, {"max_positions", "64"}},
       {{{"causal", "true"}}, {{"positions", "rotary"}}, {{"projection", "fused"}}, {{"key_value_heads", "4"}}}},
      {{{"output_modules", "true"}}, {{{"residual", "parallel"}}}},
      {{{"head", "pretraining"}, {"pooler", "pretrained-tanh"}, {"causal", "false"}},
       {{{"pooler", "none"}}, {{"causal", "true"}}}},
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

const Keys& of_windows() {
  static const Keys keys{{"input", "image"},
                         {"image_size", "32"},
                         {"patch", "4"},
                         {"causal", "false"},
                         {"stage_layers", "[2, 2]"},
                         {"stage_heads", "[2, 4]"},
                         {"window_side", "4"},
                         {"head", "image-classification"},
                         {"pooler", "mean"},
                         {"labels", "5"},
                         {"tie_embeddings", "false"}};
  return keys;
}

std::vector<Rule> rules_of_positions_and_towers() {
  const Keys distances{{"positions", "disentangled"},
                       {"position_rows", "8"},
                       {"position_terms", "[content-to-position]"},
                       {"causal", "false"}};
  const Keys latent{
      {"key_value_rank", "4"}, {"rotary_head_dim", "16"}, {"value_head_dim", "4"}, {"positions", "rotary"}};
  return {
      {distances,
       {{{"position_rows", "1"}},
        {{"position_terms", "[]"}},
        {{"causal", "true"}},
        {{"key_value_heads", "4"}},
        {{"query_key_norm", "head"}}}},
      {with(distances, {{"position_rows", "2"}})},
      {with(distances, {{"position_table", "true"}, {"max_positions", "1"}}), {{{"max_positions", "0"}}}},
      {{{"positions", "relative"}, {"position_table", "true"}, {"max_positions", "1"}},
       {{{"max_positions", "0"}}, {{"positions", "learned"}}, {{"positions", "rotary"}}}},
      {{{"positions", "relative"}}},
      {{{"positions", "rotary"}, {"rotary_table", "true"}, {"max_positions", "1"}}, {{{"max_positions", "0"}}}},
      {latent, {{{"query_key_norm", "head"}}, {{"rotary_head_dim", "15"}}, {{"rotary_head_dim", "0"}}}},
      {{{"cross_attention", "true"}, {"encoder", "{layers: 1}"}},
       {{{"projection", "fused"}}, {{"residual", "parallel"}}, {{"encoder", "{layers: 0}"}}}},
      {{{"head", "contrastive"}, {"projection_width", "1"}, {"encoder", "{layers: 1}"}}, {{{"projection_width", "0"}}}},
      {with(of_images(), {{"patch_distances", "true"}}),
       {{{"extra_tokens", "1"}},
        {{"class_token", "false"}, {"pooler", "mean"}},
        {{"projection", "fused"}},
        {{"attention_code", "written-out"}}}},
      {of_images(), {{{"box_rows", "4"}}, {{"token_dropout", "true"}}, {{"window_side", "2"}}}},
      {{{"box_rows", "4"}}},
      {of_windows(),
       {{{"stage_heads", "[2]"}},
        {{"stage_heads", "[2, 3]"}},
        {{"window_side", "0"}},
        {{"window_side", "3"}},
        {{"experts", "4"}},
        {{"sinks", "true"}},
        {{"causal", "true"}},
        {{"positions", "learned"}},
        {{"layer_scale", "true"}},
        {{"class_token", "true"}},
        {{"residual", "parallel"}},
        {{"projection", "fused"}},
        {{"input", "tokens"}},
        {{"image_size", "36"}},
        {{"stage_layers", "[2, 2, 2, 2, 2]"}, {"stage_heads", "[2, 2, 2, 2, 2]"}}}},
      {with(of_windows(), {{"window_side", "8"}})},  // the second stage has one window of 4 x 4
      {with(of_windows(),
            {{"stage_layers", "[3]"}, {"stage_heads", "[2]"}, {"image_size", "36"}, {"window_side", "3"}})},
      {{},
       {{{"head", "contrastive"}, {"projection_width", "8"}}, {{"cross_attention", "true"}}, {{"vocabulary", "0"}}}},
      {{{"input", "audio"}, {"audio_bins", "1"}, {"head", "none"}}, {{{"audio_bins", "0"}}}},
  };
}

TEST(CompositionRules, EachPartIsRefusedWithWhatItDoesNotGoWith) {
  std::vector<Rule> all = rules();
  for (Rule& rule : rules_of_positions_and_towers()) all.push_back(std::move(rule));
  for (const Rule& rule : all) {
    EXPECT_EQ(said_against(rule.taken), "") << ::testing::PrintToString(rule.taken);
    for (const Keys& change : rule.refused)
      EXPECT_NE(said_against(with(rule.taken, change)), "")
          << ::testing::PrintToString(rule.taken) << ::testing::PrintToString(change);
  }
}

}  // namespace
}  // namespace ridgeline

// Language models that see: a tower's patches among tokens. Parameters are those that their publishers count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/units/user_error.h"
#include "sim/workload/composition.h"
#include "sim/workload/families/shared_sequences.h"
#include "sim/workload/families/stack_split.h"
#include "sim/workload/families/stage_part.h"
#include "sim/workload/training_checks.h"
#include "sim/workload/training_step.h"
#include "tests/support/described_network.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ridgeline::testing::described_network;

json clip_tower() {
  return {{"hidden_size", 1024},       {"image_size", 336},
          {"intermediate_size", 4096}, {"model_type", "clip_vision_model"},
          {"patch_size", 14},          {"num_hidden_layers", 24},
          {"num_attention_heads", 16}, {"projection_dim", 768}};
}
json llava() {  // llava-hf/llava-1.5-7b-hf
  return {{"architectures", {"LlavaForConditionalGeneration"}},
          {"model_type", "llava"},
          {"image_token_index", 32000},
          {"text_config", {{"model_type", "llama"}, {"max_position_embeddings", 4096}, {"vocab_size", 32064}}},
          {"vision_config", clip_tower()},
          {"vision_feature_layer", -2}};
}
json qwen2_vl() {  // Qwen/Qwen2-VL-2B-Instruct
  return {{"architectures", {"Qwen2VLForConditionalGeneration"}},
          {"model_type", "qwen2_vl"},
          {"hidden_size", 1536},
          {"intermediate_size", 8960},
          {"num_attention_heads", 12},
          {"num_hidden_layers", 28},
          {"num_key_value_heads", 2},
          {"tie_word_embeddings", true},
          {"vocab_size", 151936},
          {"vision_config",
           {{"depth", 32},
            {"embed_dim", 1280},
            {"mlp_ratio", 4},
            {"num_heads", 16},
            {"in_chans", 3},
            {"hidden_size", 1536},
            {"patch_size", 14},
            {"spatial_merge_size", 2},
            {"temporal_patch_size", 2}}}};
}
json gemma3() {  // google/gemma-3-4b-it
  return {{"architectures", {"Gemma3ForConditionalGeneration"}},
          {"model_type", "gemma3"},
          {"mm_tokens_per_image", 256},
          {"text_config",
           {{"hidden_size", 2560},
            {"intermediate_size", 10240},
            {"model_type", "gemma3_text"},
            {"num_hidden_layers", 34},
            {"sliding_window", 1024}}},
          {"vision_config",
           {{"hidden_size", 1152},
            {"image_size", 896},
            {"intermediate_size", 4304},
            {"model_type", "siglip_vision_model"},
            {"num_attention_heads", 16},
            {"num_hidden_layers", 27},
            {"patch_size", 14},
            {"vision_use_head", false}}}};
}

TEST(SeeingNetworks, HaveTheParametersThatArePublished) {
  EXPECT_EQ(parameter_count(described_network(llava())), 7063427072);
  EXPECT_EQ(parameter_count(described_network(qwen2_vl())), 2208985600);
  EXPECT_EQ(parameter_count(described_network(gemma3())), 4300079472);
}

TEST(SeeingNetworks, RowsOfAnImageFollowFromItsPatches) {
  EXPECT_EQ(rows_of_image(*described_network(llava()).composition), 24 * 24);
  EXPECT_EQ(rows_of_image(*described_network(qwen2_vl()).composition), 16 * 16);
  EXPECT_EQ(rows_of_image(*described_network(gemma3()).composition), 16 * 16);
}

TEST(SeeingNetworks, ASequenceHoldsItsImage) {
  const ModelDescription model = described_network(llava());
  TrainingDescription training;
  training.sequence_length = 576;
  EXPECT_NO_THROW(check_training(model, training));
  training.sequence_length = 575;
  EXPECT_THROW(check_training(model, training), UserError);
}

// Qwen2.5-VL's tower: a call of attention for each window, and for each image in the layers that see all of it.
TEST(SeeingNetworks, WindowsOfATowerAreCallsOfTheirOwn) {
  Stack s;
  s.image_size = 70;
  s.patch = 14;
  EXPECT_TRUE(s.tokens_of_calls(0).empty());
  s.images_apart = true;
  EXPECT_EQ(s.tokens_of_calls(0), (std::vector<std::int64_t>{25}));
  s.window_side = 2;
  s.full_layers = {1};
  EXPECT_EQ(s.tokens_of_calls(0), (std::vector<std::int64_t>{4, 4, 2, 4, 4, 2, 2, 2, 1}));
  EXPECT_EQ(s.tokens_of_calls(1), (std::vector<std::int64_t>{25}));
}

// The text model runs as it does alone; the tower, the projector and the exchange of rows come on top.
TEST(SeeingNetworks, TowerAddsItsLayersToThoseOfTheText) {
  json config = qwen2_vl();
  config["num_hidden_layers"] = 2;
  config["vision_config"]["depth"] = 3;
  json text = config;
  text.erase("vision_config");
  text["model_type"] = "qwen2";
  text["architectures"] = {"Qwen2ForCausalLM"};
  TrainingDescription training;
  training.precision = Precision::bf16;
  training.micro_batch = 2;
  training.sequence_length = 512;
  const ModelDescription seeing = described_network(config);
  const OpTrace whole = training_run(seeing, training, AttentionChoice::flash, 1),
                alone = training_run(described_network(text), training, AttentionChoice::flash, 1);
  EXPECT_EQ(whole.parameters, parameter_count(seeing));
  EXPECT_GT(whole.calls.size(), alone.calls.size());
  const auto attentions = [](const OpTrace& trace, std::int64_t width) {
    std::int64_t count = 0;
    for (const Call& call : trace.calls)
      if (const auto* one = std::get_if<Attention>(&trace.ops[call.op])) count += one->head_dim == width ? 1 : 0;
    return count;
  };
  EXPECT_EQ(attentions(whole, 80), 2 * 2 * 3);  // of two images in the tower, forward and backward
  EXPECT_EQ(attentions(whole, 128), attentions(alone, 128));
}

// Rows of an image are whole on every rank: stages, shared layers and shared sequences are refused.
TEST(SeeingNetworks, RefuseRanksThatWouldShareAnImage) {
  const ModelDescription model = described_network(llava());
  TrainingDescription training;
  training.parallel.tensor = training.parallel.context = 2;
  const auto refusal = ::testing::HasSubstr("an image's rows among tokens are not modelled");
  EXPECT_THAT(families::why_not_cut(model, Framework::torch), refusal);
  EXPECT_THAT(families::why_not_shared(model, training), refusal);
  EXPECT_THAT(families::why_not_split(*model.composition, training), refusal);
}

TEST(SeeingNetworks, RefusesTowersThatAreNotBuilt) {
  json config = llava();
  config["vision_config"]["model_type"] = "some_tower";
  EXPECT_THROW((void)described_network(config), UserError);
  config = llava();
  config["vision_feature_layer"] = -3;
  EXPECT_THROW((void)described_network(config), UserError);
}

// Weights in 8 or 4 bits of the network's own are trained in 16; those of GPTQ are not.
TEST(SeeingNetworks, QuantisedWeightsAreTrainedWhereTheNetworkHasThem) {
  json config{{"architectures", {"Qwen3ForCausalLM"}},
              {"model_type", "qwen3"},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 4},
              {"hidden_size", 64},
              {"intermediate_size", 128},
              {"vocab_size", 1000},
              {"num_key_value_heads", 2},
              {"head_dim", 16}};
  const std::int64_t count = parameter_count(described_network(config));
  config["quantization_config"] = {{"quant_method", "fp8"}};
  EXPECT_EQ(parameter_count(described_network(config)), count);
  EXPECT_THAT(described_network(config).unread, ::testing::ElementsAre("quantization_config"));
  config["quantization_config"] = {{"quant_method", "gptq"}};
  EXPECT_THROW((void)described_network(config), UserError);
}

// One label is a number (MSELoss), several of which each is yes or no have a binary cross entropy.
TEST(SeeingNetworks, ClassifiersHaveTheLossOfTheirProblem) {
  for (const char* type : {"bert", "roberta"}) {
    const std::string stem = type == std::string("bert") ? "Bert" : "Roberta";
    json config{{"architectures", {stem + "ForSequenceClassification"}},
                {"model_type", type},
                {"num_hidden_layers", 2},
                {"num_attention_heads", 4},
                {"hidden_size", 64},
                {"intermediate_size", 128},
                {"vocab_size", 1000},
                {"max_position_embeddings", 66},
                {"type_vocab_size", 1},
                {"num_labels", 5}};
    const auto count_losses = [&] {
      TrainingDescription training;
      training.micro_batch = 2;
      training.sequence_length = 32;
      const OpTrace trace = training_run(described_network(config), training, AttentionChoice::flash, 1);
      std::int64_t losses = 0;
      for (const Call& call : trace.calls) losses += std::holds_alternative<NllLoss>(trace.ops[call.op]) ? 1 : 0;
      return losses;
    };
    EXPECT_EQ(count_losses(), 2) << type;
    config["problem_type"] = "multi_label_classification";
    EXPECT_EQ(count_losses(), 0) << type;
    config.erase("problem_type");
    config["num_labels"] = 1;
    EXPECT_EQ(count_losses(), 0) << type;
  }
}

}  // namespace
}  // namespace ridgeline

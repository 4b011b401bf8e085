// Towers that classify, documents with boxes, positions of each layer, and what a type has where a configuration says
// nothing. Parameters were counted by hand from Transformers' source.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/workload/composition.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/described_network.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ridgeline::testing::described_network;

json small(const std::string& type, const std::string& architecture) {
  return {{"model_type", type}, {"architectures", {architecture}}, {"num_hidden_layers", 2}, {"num_attention_heads", 4},
          {"hidden_size", 64},  {"intermediate_size", 128},        {"vocab_size", 1000}};
}

/// Four projections, two norms and a feed-forward part, with biases.
std::int64_t layer_of(std::int64_t d, std::int64_t f) { return 4 * (d * d + d) + 4 * d + 2 * d * f + f + d; }

TEST(TowerConfigurations, KeysOfATowerThatNothingReadsAreNamed) {
  const json tower{{"hidden_size", 768},        {"num_hidden_layers", 12}, {"num_attention_heads", 12},
                   {"intermediate_size", 3072}, {"image_size", 224},       {"patch_size", 16}};
  for (const char* type : {"clip", "siglip"}) {
    json config{{"model_type", type},
                {"architectures",
                 {type == std::string("clip") ? "CLIPForImageClassification" : "SiglipForImageClassification"}},
                {"num_labels", 10},
                {"vision_config", tower}};
    EXPECT_THAT(described_network(config).unread, ::testing::IsEmpty()) << type;
    config["vision_config"]["patch_sise"] = 32;
    config["vision_config"]["top_k"] = 50;  // of generation: no part of a network
    EXPECT_THAT(described_network(config).unread, ::testing::ElementsAre("vision_config.patch_sise")) << type;
  }
}

struct OfParameters {
  const char* config;
  std::int64_t parameters;
};

std::vector<OfParameters> counted() {
  const std::int64_t d = 768, f = 3072, twelve = 12 * layer_of(d, f), classifier = 2 * d + 2, norm = 2 * d;
  const std::int64_t probe = d + 3 * d * d + 3 * d + d * d + d + norm + 2 * d * f + f + d;
  const std::int64_t attention = 4 * 512 * 6 * 64, gated = 3 * 512 * 1024, distances = 32 * 6;
  return {
      // openai/clip-vit-base-patch32, its image tower with a classifier of two
      {R"({"architectures": ["CLIPForImageClassification"], "model_type": "clip", "id2label": {"0": "", "1": ""},
           "projection_dim": 512, "text_config": {"model_type": "clip_text_model"},
           "vision_config": {"model_type": "clip_vision_model", "hidden_size": 768, "num_hidden_layers": 12,
           "num_attention_heads": 12, "intermediate_size": 3072, "image_size": 224, "patch_size": 32}})",
       d + d * 3 * 32 * 32 + 50 * d + 2 * norm + twelve + classifier},
      // google/siglip-base-patch16-224, likewise: the probe's part counts
      {R"({"architectures": ["SiglipForImageClassification"], "model_type": "siglip", "id2label": {"0": "", "1": ""},
           "text_config": {"model_type": "siglip_text_model"},
           "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 768, "num_hidden_layers": 12,
           "num_attention_heads": 12, "intermediate_size": 3072, "image_size": 224, "patch_size": 16}})",
       d * 3 * 16 * 16 + d + 196 * d + norm + twelve + probe + classifier},
      // … without it
      {R"({"architectures": ["SiglipForImageClassification"], "model_type": "siglip", "id2label": {"0": "", "1": ""},
           "vision_config": {"hidden_size": 768, "num_hidden_layers": 12, "vision_use_head": false,
           "num_attention_heads": 12, "intermediate_size": 3072, "image_size": 224, "patch_size": 16}})",
       d * 3 * 16 * 16 + d + 196 * d + norm + twelve + classifier},
      // google/rembert with a classifier of two
      {R"({"architectures": ["RemBertForSequenceClassification"], "model_type": "rembert", "vocab_size": 250300,
           "hidden_size": 1152, "num_hidden_layers": 32, "num_attention_heads": 18, "input_embedding_size": 256,
           "output_embedding_size": 1664, "intermediate_size": 4608, "hidden_act": "gelu", "hidden_dropout_prob": 0.0,
           "attention_probs_dropout_prob": 0.0, "classifier_dropout_prob": 0.1, "max_position_embeddings": 512,
           "type_vocab_size": 2, "id2label": {"0": "", "1": ""}})",
       (250300 + 512 + 2) * 256 + 2 * 256 + 256 * 1152 + 1152 + 32 * layer_of(1152, 4608) + 1152 * 1152 + 1152 +
           1152 * 2 + 2},
      // google/umt5-small: its table is shared whatever it says
      {R"({"architectures": ["UMT5ForConditionalGeneration"], "model_type": "umt5", "d_ff": 1024, "d_kv": 64,
           "d_model": 512, "dropout_rate": 0.1, "feed_forward_proj": "gated-gelu", "is_encoder_decoder": true,
           "num_decoder_layers": 8, "num_heads": 6, "num_layers": 8, "relative_attention_max_distance": 128,
           "relative_attention_num_buckets": 32, "tie_word_embeddings": false, "vocab_size": 256384})",
       256384 * 512 + 8 * (attention + distances + gated + 2 * 512) + 512 +
           8 * (2 * attention + distances + gated + 3 * 512) + 512},
      // microsoft/layoutlm-base-uncased with a classifier of tokens; its pooler counts
      {R"({"architectures": ["LayoutLMForTokenClassification"], "model_type": "layoutlm", "hidden_act": "gelu",
           "attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.1, "hidden_size": 768,
           "intermediate_size": 3072, "max_2d_position_embeddings": 1024, "max_position_embeddings": 512,
           "num_attention_heads": 12, "num_hidden_layers": 12, "type_vocab_size": 2, "vocab_size": 30522,
           "id2label": {"0": "", "1": ""}})",
       (30522 + 512 + 2 + 4 * 1024) * d + norm + twelve + d * d + d + classifier},
  };
}

TEST(TowerConfigurations, ParametersAreThoseCountedByHand) {
  TrainingDescription training;
  training.micro_batch = 2;
  training.sequence_length = 32;
  for (const auto& [text, parameters] : counted()) {
    const json config = json::parse(text);
    const ModelDescription model = described_network(config);
    EXPECT_EQ(parameter_count(model), parameters) << config["architectures"];
    if (const std::int64_t only = only_length(model); only > 0) training.sequence_length = only;
    EXPECT_EQ(training_run(model, training, AttentionChoice::flash, 1).parameters, parameters)
        << config["architectures"];
    training.sequence_length = 32;
  }
}

// What a table says of a type holds where a configuration says nothing; what the configuration says is kept.
TEST(TowerConfigurations, DefaultsOfATypeGiveWay) {
  json cwm = small("cwm", "CwmForCausalLM");
  EXPECT_EQ(described_network(cwm).composition->stack.head_dim, 128);
  EXPECT_EQ(described_network(cwm).composition->stack.window, 8192);
  cwm.update({{"head_dim", 32}, {"sliding_window", 16}, {"layer_types", {"sliding_attention", "full_attention"}}});
  const ModelDescription said = described_network(cwm);
  EXPECT_EQ(said.composition->stack.head_dim, 32);
  EXPECT_EQ(said.composition->stack.window, 16);
  EXPECT_TRUE(said.composition->stack.windowed(0));
  json mpnet = small("mpnet", "MPNetForMaskedLM");
  mpnet["max_position_embeddings"] = 66;
  EXPECT_EQ(described_network(mpnet).composition->stack.attention_dropout, 0.1);  // of the table that it is like
  mpnet["attention_probs_dropout_prob"] = 0.0;
  EXPECT_EQ(described_network(mpnet).composition->stack.attention_dropout, 0.0);
}

TEST(TowerConfigurations, TablesOfTokensAreTiedWhereATypeSaysSoAndTheConfigurationDoesNot) {
  for (const auto& [type, architecture] : {std::pair{"smollm3", "SmolLM3ForCausalLM"},
                                           {"cohere", "CohereForCausalLM"},
                                           {"ernie4_5", "Ernie4_5ForCausalLM"}}) {
    json config = small(type, architecture);
    const std::int64_t tied = parameter_count(described_network(config));
    config["tie_word_embeddings"] = false;
    EXPECT_EQ(parameter_count(described_network(config)) - tied, 1000 * 64) << type;
  }
}

// Whoever makes a mask of given positions makes the host wait for an answer: for each of two masks, or not at all.
TEST(TowerConfigurations, DocumentsAreLookedForOnceAMask) {
  const auto waits = [](const json& config) {
    TrainingDescription training;
    training.micro_batch = 2;
    training.sequence_length = 32;
    const OpTrace trace = training_run(described_network(config), training, AttentionChoice::flash, 1);
    return std::count_if(trace.calls.begin(), trace.calls.end(), [&](const Call& call) {
      const auto* copy = std::get_if<Copy>(&trace.ops[call.op]);
      return copy != nullptr && copy->kind == CopyKind::device_to_host;
    });
  };
  json cwm = small("cwm", "CwmForCausalLM");
  cwm.update({{"head_dim", 32}, {"layer_types", {"sliding_attention", "full_attention"}}});
  json one = cwm;
  one["layer_types"] = {"full_attention", "full_attention"};
  EXPECT_EQ(waits(cwm), waits(one) + 1);
  const json xglm = {{"model_type", "xglm"},
                     {"architectures", {"XGLMForCausalLM"}},
                     {"num_layers", 2},
                     {"d_model", 64},
                     {"attention_heads", 4},
                     {"vocab_size", 1000},
                     {"max_position_embeddings", 64}};
  EXPECT_EQ(waits(xglm), waits(one) - 1);
}

}  // namespace
}  // namespace ridgeline

// Networks as compositions of blocks: every configuration of Transformers measured or counted
// (measurements/networks), and descriptions in YAML.
#include "sim/workload/composition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sim/config/parse_yaml.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/described_network.h"
#include "tests/support/measurement_index.h"
#include "tests/support/operand_sizes.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ridgeline::testing::described_network;
using ::testing::HasSubstr;

std::string refusal(const json& config) {
  try {
    described_network(config);
  } catch (const config::ConfigError& e) {
    return e.what();
  }
  return "";
}
ModelDescription of_yaml(const std::string& yaml) {
  const config::Node tree = config::parse_yaml(yaml, "m.yaml");
  return load_model(config::Value(tree));
}
std::string mistake(const std::string& yaml) {
  try {
    of_yaml(yaml);
  } catch (const config::ConfigError& e) {
    return e.what();
  }
  return "no mistake was found";
}

TEST(Composition, ParameterCountsAreThoseOfTransformers) {
  int exact = 0;
  for_each_row(testing::measurements().file("networks/networks.jsonl.gz"), [&](const json& row) {
    const std::string name = row["name"];
    const ModelDescription model = described_network(row["config"]);
    EXPECT_EQ(parameter_count(model), row["parameters"].get<std::int64_t>()) << name;
    EXPECT_THAT(model.unread, ::testing::IsEmpty()) << name;
    ++exact;
  });
  EXPECT_EQ(exact, 80);
}

TEST(Composition, CountsOfFurtherFamiliesAreThoseOfTransformers) {
  int exact = 0;
  std::set<std::string> types;
  for_each_row(testing::measurements().file("networks/counts.jsonl.gz"), [&](const json& row) {
    const ModelDescription model = described_network(row["config"]);
    EXPECT_EQ(parameter_count(model), row["parameters"].get<std::int64_t>()) << row["name"];
    EXPECT_THAT(model.unread, ::testing::IsEmpty()) << row["name"];
    types.insert(row["config"]["model_type"].get<std::string>());
    ++exact;
  });
  EXPECT_EQ(exact, 94);
  EXPECT_EQ(types.size(), 51u);
}

TEST(Composition, WhatRunsHasTheParametersThatAreCounted) {
  TrainingDescription training;
  training.precision = Precision::amp_bf16;
  training.micro_batch = 1;
  training.sequence_length = 64;
  for_each_row(testing::measurements().file("networks/networks.jsonl.gz"), [&](const json& row) {
    if (!row.contains("B") && row["name"] != "deberta-base") return;
    const OpTrace trace = training_run(described_network(row["config"]), training, AttentionChoice::cudnn, 1);
    EXPECT_EQ(trace.parameters, row["parameters"].get<std::int64_t>()) << row["name"];
    EXPECT_GT(trace.model_flops, 0.0) << row["name"];
    EXPECT_EQ(testing_support::first_of_another_size(trace), "") << row["name"];
  });
}

// BERT's masked language model said block by block is the network of family bert.
TEST(Composition, AKnownNetworkCanBeSaidBlockByBlock) {
  const ModelDescription composed = of_yaml(
      "{family: composed, layers: 12, heads: 12, hidden: 768, vocabulary: 30522, max_positions: 512, positions: "
      "learned, type_vocabulary: 2,"
      " embedding_norm: true, norm_place: post, final_norm: false, causal: false, head: masked-lm, head_transform: "
      "true, head_bias: true}");
  const ModelDescription bert = load_model("bert-base", {{"head", "masked-lm", ""}});
  EXPECT_EQ(parameter_count(composed), parameter_count(bert));
  EXPECT_DOUBLE_EQ(model_flops(composed, 2, 128), model_flops(bert, 2, 128));
}

TEST(Composition, FlopsAreThoseOfTheSameNetworkOfAnOwnFamily) {
  const ModelDescription composed = of_yaml(
      "{family: composed, layers: 4, heads: 8, key_value_heads: 2, hidden: 512, feed_forward: 1024, vocabulary: 1000, "
      "positions: rotary,"
      " norm: rms, feed_forward_kind: gated, activation: silu, qkv_bias: false, output_bias: false, feed_forward_bias: "
      "false, tie_embeddings: false}");
  const ModelDescription llama = of_yaml(
      "{family: llama, layers: 4, heads: 8, key_value_heads: 2, hidden: 512, feed_forward: 1024, vocabulary: 1000}");
  EXPECT_EQ(parameter_count(composed), parameter_count(llama));
  // Rotary angles are a product too, of no weight.
  EXPECT_NEAR(model_flops(composed, 2, 128) / model_flops(llama, 2, 128), 1.0, 1e-4);
}

TEST(Composition, TheSameBlocksRunTheSameOperationsAsTheFamilyOfTheirOwn) {
  TrainingDescription training;
  training.micro_batch = 2;
  training.sequence_length = 128;
  training.precision = Precision::amp_bf16;
  const auto operations = [&](const ModelDescription& model, AttentionChoice choice) {
    const OpTrace trace = training_run(model, training, choice);
    std::map<std::string, int> count;
    for (auto i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
      if (trace.records[i].kind == Record::Kind::op) {
        const Op& op = trace.ops[trace.calls[trace.records[i].index].op];
        ++count[name_of(op) + " " + shape_of(op)];
      }
    return count;
  };
  const ModelDescription composed = of_yaml(
      "{family: composed, layers: 2, heads: 8, key_value_heads: 2, hidden: 512, feed_forward: 1024, vocabulary: 1000, "
      "positions: rotary,"
      " norm: rms, feed_forward_kind: gated, activation: silu, qkv_bias: false, output_bias: false, feed_forward_bias: "
      "false, tie_embeddings: false}");
  const ModelDescription llama = of_yaml(
      "{family: llama, layers: 2, heads: 8, key_value_heads: 2, hidden: 512, feed_forward: 1024, vocabulary: 1000}");
  for (const AttentionChoice choice : {AttentionChoice::cudnn, AttentionChoice::flash, AttentionChoice::eager})
    EXPECT_EQ(operations(composed, choice), operations(llama, choice)) << static_cast<int>(choice);
}

TEST(Composition, MistakesNameThePlaceAndWhatIsAllowed) {
  const std::string sizes = "family: composed, layers: 2, heads: 4, hidden: 64, vocabulary: 10";
  EXPECT_THAT(mistake("{" + sizes + ", norms: rms}"), ::testing::AllOf(HasSubstr("norms"), HasSubstr("m.yaml:1:")));
  EXPECT_THAT(mistake("{" + sizes + ", norm: rsm}"), HasSubstr("did you mean rms?"));
  EXPECT_THAT(mistake("{" + sizes + ", positions: learned}"), HasSubstr("max_positions"));
  EXPECT_THAT(mistake("{" + sizes + ", key_value_heads: 3}"), HasSubstr("evenly"));
  EXPECT_THAT(mistake("{" + sizes + ", cross_attention: true}"), HasSubstr("encoder"));
  EXPECT_THAT(mistake("{" + sizes + ", experts: 2, experts_per_token: 3}"), HasSubstr("experts_per_token"));
  EXPECT_THAT(mistake("{" + sizes + ", layer_kinds: [half]}"), HasSubstr("full or window"));
  EXPECT_THAT(mistake("{family: composed, layers: 2, heads: 3, hidden: 64, vocabulary: 10}"), HasSubstr("multiple"));
  EXPECT_THAT(mistake("{family: composed, layers: 2, hidden: 64, vocabulary: 10}"), HasSubstr("heads"));
}

TEST(Composition, RotaryPositionsNeedPairsToTurn) {
  const std::string latent =
      "{family: composed, vocabulary: 10, positions: rotary, layers: 1, heads: 2, hidden: 64, "
      "head_dim: 16, key_value_rank: 8, value_head_dim: 16, rotary_head_dim: ";
  for (const char* odd : {"0", "1", "3"}) EXPECT_THAT(mistake(latent + odd + "}"), HasSubstr("pairs")) << odd;
  EXPECT_THAT(mistake("{family: composed, vocabulary: 10, positions: rotary, layers: 1, heads: 2, hidden: 8, "
                      "rotary_width: 6}"),
              HasSubstr("6 numbers to turn of a head of 4"));
  EXPECT_EQ(of_yaml(latent + "4}").composition->stack.turned(), 4);
}

// Whatever numbers a composition has, it is refused or trains.
TEST(Composition, AnyNumbersAreRefusedOrTrain) {
  std::mt19937 random(2311);  // NOLINT: the same compositions each time
  const auto any = [&](const std::vector<const char*>& values) {
    return std::string(values[random() % values.size()]);
  };
  TrainingDescription training;
  training.sequence_length = 8;
  int trained = 0;
  for (int i = 0; i < 300; ++i) {
    std::string yaml =
        "{family: composed, vocabulary: 10, layers: 1, max_positions: 8, hidden: " + any({"1", "6", "8"}) +
        ", heads: " + any({"1", "2", "3"}) + ", positions: " + any({"rotary", "alibi", "learned"});
    for (const auto& [key, values] :
         std::map<std::string, std::vector<const char*>>{{"head_dim", {"0", "1", "4"}},
                                                         {"key_value_heads", {"0", "1", "2"}},
                                                         {"rotary_width", {"0", "1", "2", "9"}},
                                                         {"window", {"0", "1", "3"}},
                                                         {"experts", {"0", "1", "3"}},
                                                         {"experts_per_token", {"1", "2"}},
                                                         {"feed_forward", {"0", "1", "5"}},
                                                         {"expert_step", {"1", "2"}}})
      if (random() % 2 == 0) yaml += ", " + key + ": " + any(values);
    yaml += "}";
    SCOPED_TRACE(yaml);
    try {
      const ModelDescription model = of_yaml(yaml);
      EXPECT_GT(training_run(model, training, AttentionChoice::math).ops.size(), 0u);
      ++trained;
    } catch (const config::ConfigError&) {
      continue;
    }
  }
  EXPECT_GT(trained, 30);
}

const json kMistral{{"model_type", "mistral"},  {"num_hidden_layers", 2}, {"num_attention_heads", 4},
                    {"num_key_value_heads", 2}, {"hidden_size", 64},      {"vocab_size", 100},
                    {"intermediate_size", 128}, {"head_dim", 16},         {"sliding_window", 32}};

json with(const json& changes) {
  json config = kMistral;
  config.update(changes);
  return config;
}

TEST(FamilyTables, AnUnknownModelTypeIsToldWithTheNearestNameOrWhereTheKnownOnesAre) {
  EXPECT_THAT(refusal(with({{"model_type", "mistal"}})),
              ::testing::AllOf(HasSubstr("did you mean 'mistral'?"), HasSubstr("model_type")));
  EXPECT_THAT(refusal(with({{"model_type", "mamba9"}})),
              ::testing::AllOf(HasSubstr("docs/networks.md"), ::testing::Not(HasSubstr("did you mean"))));
}

TEST(FamilyTables, KeysThatAskForAnotherNetworkAreRefusedByNameAndUnknownOnesNamed) {
  EXPECT_THAT(refusal(with({{"hidden_act", "mish"}})), ::testing::AllOf(HasSubstr("hidden_act"), HasSubstr("silu")));
  EXPECT_THAT(refusal(with({{"quantization_config", {{"bits", 4}}}})), HasSubstr("quantization_config"));
  EXPECT_THAT(refusal(with({{"architectures", {"MistralForQuestionAnswering"}}})), HasSubstr("MistralForCausalLM"));
  EXPECT_THAT(refusal(with({{"layer_types", {"chunked_attention"}}})), HasSubstr("layer_types"));
  EXPECT_THAT(refusal({{"model_type", "roberta"},
                       {"num_hidden_layers", 2},
                       {"num_attention_heads", 4},
                       {"hidden_size", 64},
                       {"vocab_size", 100},
                       {"max_position_embeddings", 512e90}}),
              HasSubstr("is too large a number"));
  EXPECT_THAT(refusal({{"model_type", "internlm2"}, {"num_hidden_layers", 2}, {"num_attention_heads", 4}}),
              HasSubstr("is missing, which"));
  EXPECT_EQ(described_network(with({{"some_new_key", 1}})).unread, std::vector<std::string>{"some_new_key"});
}

TEST(FamilyTables, AWindowMasksLongerSequencesOnly) {
  TrainingDescription training;
  training.precision = Precision::amp_bf16;
  const auto masked = [&](std::int64_t length) {
    training.sequence_length = length;
    const OpTrace trace = training_run(described_network(kMistral), training, AttentionChoice::cudnn);
    return std::count_if(trace.ops.begin(), trace.ops.end(), [](const Op& op) {
      const auto* attention = std::get_if<Attention>(&op);
      return attention != nullptr && attention->bias;
    });
  };
  EXPECT_EQ(masked(32), 0);
  EXPECT_EQ(masked(64), 2);  // forward and backward
}

TEST(FamilyTables, DecodersGenerateWithTheKeysOfEarlierTokens) {
  TrainingDescription use;
  use.sequence_length = 16;
  use.inference = InferenceDescription{};
  use.inference->new_tokens = 3;
  const OpTrace trace = training_run(described_network(kMistral), use, AttentionChoice::flash, 1);
  const auto longest = [&](const Op& op) {
    const auto* attention = std::get_if<Attention>(&op);
    return attention != nullptr ? attention->seq_k : 0;
  };
  std::int64_t keys = 0;
  for (const Op& op : trace.ops) keys = std::max(keys, longest(op));
  EXPECT_EQ(keys, 18) << "the last token is never run";
}

TEST(FamilyTables, AListInOneWordIsAList) {
  json config{{"model_type", "deberta-v2"},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 4},
              {"hidden_size", 64},
              {"vocab_size", 100},
              {"position_buckets", 8},
              {"pos_att_type", "p2c|c2p"},
              {"relative_attention", true},
              {"norm_rel_ebd", "layer_norm"},
              {"share_att_key", true},
              {"position_biased_input", false}};
  const Stack stack = described_network(config).composition->stack;
  EXPECT_EQ(stack.position_terms, (std::vector<std::string>{"position-to-content", "content-to-position"}));
  EXPECT_EQ(stack.position_rows, 16);
  // A convolution beside the first layer, and its norm.
  const std::int64_t without = parameter_count(described_network(config));
  config["conv_kernel_size"] = 3;
  config["conv_act"] = "gelu";
  EXPECT_EQ(parameter_count(described_network(config)) - without, 64 * 64 * 3 + 64 + 2 * 64);
  TrainingDescription training;
  training.sequence_length = 32;
  EXPECT_EQ(training_run(described_network(config), training, AttentionChoice::math, 1).parameters,
            parameter_count(described_network(config)));
  config["conv_act"] = "tanh";
  EXPECT_THAT(refusal(config), HasSubstr("conv_act"));
}

// Kinds of layers are repeated, and say in which of them heads are turned.
TEST(Composition, LayersThatKnowNoPositionsTurnNothing) {
  TrainingDescription training;
  training.precision = Precision::bf16;
  training.sequence_length = 64;
  const auto concatenations = [&](const std::string& kinds) {
    const OpTrace trace = training_run(
        of_yaml("{family: composed, layers: 4, heads: 2, hidden: 64, vocabulary: 10, positions: rotary" + kinds + "}"),
        training, AttentionChoice::flash, 1);
    return std::count_if(trace.calls.begin(), trace.calls.end(), [&](const Call& call) {
      const auto* copy = std::get_if<Copy>(&trace.ops[call.op]);
      return copy != nullptr && concatenates(copy->kind) && copy->rows > 64;
    });
  };
  const auto all = concatenations("");
  EXPECT_GT(all, 0);
  EXPECT_EQ(4 * concatenations(", rotary_kinds: [turned, plain, plain, plain]"), all);
  EXPECT_THAT(mistake("{family: composed, layers: 1, heads: 2, hidden: 64, vocabulary: 10, rotary_kinds: [half]}"),
              HasSubstr("turned or plain"));
}

TEST(Composition, KeysThatNothingWouldReadAreRefused) {
  const std::string sizes = "{family: composed, layers: 2, heads: 4, hidden: 64, vocabulary: 10, ";
  EXPECT_THAT(mistake(sizes + "window_side: 7}"), HasSubstr("stage_layers"));
  EXPECT_THAT(mistake(sizes + "residual: parallel, layer_scale: true}"), HasSubstr("residual: serial"));
  EXPECT_THAT(mistake(sizes + "norm_place: post, first_norm: false}"), HasSubstr("norm_place"));
  EXPECT_THAT(mistake(sizes + "extra_tokens: 1}"), HasSubstr("class_token"));
  EXPECT_THAT(mistake(sizes + "position_table: true, max_positions: 8}"), HasSubstr("disentangled"));
  EXPECT_THAT(mistake(sizes + "positions: disentangled, position_rows: 8}"), HasSubstr("position_terms"));
  EXPECT_THAT(mistake(sizes + "projection: fused, query_key_norm: width}"), HasSubstr("separate"));
}

TEST(Composition, StagesNeedWholeWindows) {
  const std::string stages =
      "{family: composed, input: image, layers: 1, heads: 1, hidden: 32, patch: 4, causal: false, head: "
      "image-classification, pooler: mean, embedding_norm: true, stage_layers: [2, 2], stage_heads: [1, 2], ";
  const ModelDescription model = of_yaml(stages + "image_size: 56, window_side: 7}");
  EXPECT_EQ(model.composition->stack.layers, 4);
  EXPECT_EQ(model.composition->stack.out_width(), 64);
  EXPECT_THAT(mistake(stages + "image_size: 64, window_side: 7}"), HasSubstr("no whole windows of 7 x 7"));
  EXPECT_THAT(mistake(stages + "image_size: 56}"), HasSubstr("window_side"));
  EXPECT_THAT(mistake("{family: composed, layers: 1, heads: 1, hidden: 8, vocabulary: 10, stage_layers: [1]}"),
              HasSubstr("input: image"));
}

TEST(FamilyTables, EveryFamilyIsSmall) {
  const auto folder = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "models" / "families";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    int lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    EXPECT_LT(lines, 60) << entry.path();
  }
}

TEST(Composition, ADescriptionSaysHeadsAndWidthsOfItsBlocks) {
  const ModelDescription d = of_yaml(
      "{family: composed, layers: 3, heads: 8, key_value_heads: 2, hidden: 64, head_dim: 16, feed_forward: 96, "
      "vocabulary: 1000, max_positions: 77, positions: rotary, norm: rms, dropout: 0.25}");
  EXPECT_EQ(d.layers, 3);
  EXPECT_EQ(d.heads, 8);
  EXPECT_EQ(d.key_value_heads, 2);
  EXPECT_EQ(d.hidden, 64);
  EXPECT_EQ(d.head_width, 16);
  EXPECT_EQ(d.feed_forward, 96);
  EXPECT_EQ(d.vocabulary, 1000);
  EXPECT_EQ(d.max_positions, 77);
  EXPECT_DOUBLE_EQ(d.dropout, 0.25);
}

}  // namespace
}  // namespace ridgeline

#include "sim/workload/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/units/user_error.h"
#include "sim/workload/composition.h"
#include "sim/workload/load_model.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

// Totals of the published checkpoints. Heads beside the body: BERT and DeBERTa-v3 classify two labels, ViT the 1,000
// classes of ImageNet, RoBERTa, DistilBERT and ModernBERT predict masked tokens. Gemma 3 of 4B and more is the total
// without its tower of images and projection, DeepSeek-V3 without the module for multi-token prediction.
TEST(Models, EveryShippedNetworkHasTheParametersThatItsFileSays) {
  for (const std::string& name : model_names()) {
    const config::Node file = config::load_yaml(config::data_folder("models") / (name + ".yaml"));
    const config::Value said = config::Value(file)["parameters"];
    ASSERT_TRUE(said.exists()) << name;
    EXPECT_EQ(parameter_count(load_model(name)), said.integer({1})) << name;
  }
}

// A file that says one number twice would pass by itself: these were published apart from any configuration.
TEST(Models, ParameterCountsAreThePublishedOnes) {
  const std::pair<const char*, std::int64_t> published[] = {
      {"gpt2", 124439808},          {"gpt2-xl", 1557611200},       {"llama-3-8b", 8030261248},
      {"llama-3.2-1b", 1235814400}, {"mixtral-8x7b", 46702792704}, {"qwen3-8b", 8190735360},
      {"gemma-2-9b", 9241705984},   {"gpt-oss-20b", 20914757184},  {"whisper-large-v3", 1543490560},
      {"phi-4", 14659507200},       {"mistral-7b", 7248023552},    {"vit-large", 304326632}};
  for (const auto& [name, count] : published) EXPECT_EQ(parameter_count(load_model(name)), count) << name;
}

TEST(Models, BertBaseWithoutItsClassifierHasThePublishedEncoder) {
  ModelDescription bert = load_model("bert-base");
  EXPECT_EQ(parameter_count(bert) - (768 * 2 + 2), 109482240);
}

TEST(Models, HeadsOfBertCountWhatHuggingFaceCounts) {
  ModelDescription bert = load_model("bert-base");
  bert.head = ModelHead::question_answering;
  EXPECT_EQ(parameter_count(bert), 108893186);
  bert.head = ModelHead::masked_lm;
  EXPECT_EQ(parameter_count(bert), 109514298);
  bert.head = ModelHead::pretraining;
  EXPECT_EQ(parameter_count(bert), 110106428);
}

TEST(Models, AHuggingFaceConfigGivesTheSameModelAsOurs) {
  const auto path = std::filesystem::path(temporary_path("bert-config.json"));
  std::ofstream(path)
      << R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"], "hidden_size": 1024, "num_hidden_layers": 24,
    "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2,
    "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0})";
  ModelDescription theirs = load_model(path.string());
  theirs.name = "bert-large";
  EXPECT_EQ(theirs, load_model("bert-large"));
  std::filesystem::remove(path);
}

/// A config.json of a small model with more keys.
ModelDescription of_config(const std::string& type, const std::string& more) {
  const std::string sizes =
      type == "gpt2"
          ? R"("n_layer": 2, "n_head": 4, "n_embd": 64, "vocab_size": 1000, "n_positions": 128)"
          : R"("num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 96, "vocab_size": 1000,
               "max_position_embeddings": 128)";
  // Mistral's class has eight where nothing is said.
  const bool grouped = type == "mistral" && more.find("num_key_value_heads") == std::string::npos;
  const auto path = std::filesystem::path(temporary_path("some-config.json"));
  std::ofstream(path) << R"({"model_type": ")" << type << R"(", )" << sizes
                      << (grouped ? R"(, "num_key_value_heads": 4)" : "") << (more.empty() ? "" : ", ") << more << "}";
  struct Remove {
    std::filesystem::path path;
    ~Remove() { std::filesystem::remove(path); }
  } const remove{path};
  return load_model(path.string());
}
std::string refused(const std::string& type, const std::string& more) {
  try {
    of_config(type, more);
  } catch (const config::ConfigError& e) {
    return e.what();
  }
  return "";
}

// Parameters of LlamaForCausalLM: embeddings and output 2 x 1000 x 64, norms 5 x 64, and a block's own.
TEST(HuggingFaceConfig, KeysThatChangeTheNetworkAreBuilt) {
  const std::int64_t outside = 2 * 1000 * 64 + 64, norms = 2 * 64, mlp = 3 * 64 * 96;
  EXPECT_EQ(parameter_count(of_config("llama", "")), outside + 2 * (4 * 64 * 64 + mlp + norms));
  EXPECT_EQ(parameter_count(of_config("llama", R"("head_dim": 16)")), parameter_count(of_config("llama", "")));
  EXPECT_EQ(parameter_count(of_config("llama", R"("head_dim": 32, "num_key_value_heads": 2)")),
            outside + 2 * (2 * 64 * 128 + 2 * 64 * 64 + mlp + norms));
  EXPECT_EQ(parameter_count(of_config("llama", R"("attention_bias": true)")),
            outside + 2 * (4 * 64 * 64 + 4 * 64 + mlp + norms));
  EXPECT_EQ(parameter_count(of_config("llama", R"("mlp_bias": true)")),
            outside + 2 * (4 * 64 * 64 + mlp + 2 * 96 + 64 + norms));
  EXPECT_EQ(parameter_count(of_config("llama", R"("tie_word_embeddings": true)")),
            outside - 1000 * 64 + 2 * (4 * 64 * 64 + mlp + norms));
  EXPECT_EQ(of_config("llama", R"("head_dim": 32)").attention_width(), 128);
  EXPECT_EQ(of_config("llama", R"("attention_dropout": 0.25)").attention_dropout, 0.25);
  EXPECT_FALSE(
      of_config("bert", R"("architectures": ["BertForMaskedLM"], "tie_word_embeddings": false)").tie_embeddings);
}

TEST(HuggingFaceConfig, KeysThatAskForAnotherNetworkAreRefusedByName) {
  const std::pair<std::string, std::string> cases[] = {
      {"llama", R"("pretraining_tp": 2)"},
      {"llama", R"("partial_rotary_factor": 0.5)"},
      {"llama", R"("quantization_config": {"bits": 4})"},
      {"llama", R"("architectures": ["LlamaForQuestionAnswering"])"},
      {"llama", R"("head_dim": 7)"},
      {"llama", R"("hidden_act": "gelu")"},
      {"llama", R"("rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5})"},
      {"llama", R"("architectures": "LlamaForCausalLM")"},
      {"bert", R"("hidden_act": "silu")"},
      {"bert", R"("problem_type": "regression")"},
      {"gpt2", R"("activation_function": "mish")"},
      {"bert", R"("position_embedding_type": "relative_key")"},
      {"bert", R"("is_decoder": true)"},
      {"bert", R"("architectures": ["BertForMultipleChoice"])"},
      {"bert", R"("architectures": ["RobertaForMaskedLM"])"},
      {"bert", R"("chunk_size_feed_forward": 64)"},
      {"bert", R"("output_attentions": true)"},
      {"bert", R"("pruned_heads": {"0": [1]})"},
      {"gpt2", R"("reorder_and_upcast_attn": true)"},
      {"gpt2", R"("scale_attn_weights": false)"},
      {"gpt2", R"("add_cross_attention": true)"},
      {"gpt2", R"("architectures": ["GPT2DoubleHeadsModel"])"}};
  for (const auto& [type, more] : cases) {
    const std::string key = more.substr(1, more.find('"', 1) - 1);
    const std::string message = refused(type, more);
    EXPECT_FALSE(message.empty()) << more;
    EXPECT_NE(message.find(key), message.npos) << message;
  }
}

TEST(HuggingFaceConfig, EveryArchitectureIsBuiltOrRefusedInOneLineThatSaysWhichAre) {
  struct Family {
    std::string type;
    std::vector<std::string> built, refused;
  };
  const std::vector<Family> families{
      {"bert",
       {"BertForSequenceClassification", "BertForQuestionAnswering", "BertForMaskedLM", "BertForPreTraining",
        "BertModel", "BertForTokenClassification"},
       {"BertForMultipleChoice", "BertForNextSentencePrediction", "BertLMHeadModel"}},
      {"gpt2",
       {"GPT2LMHeadModel", "GPT2Model", "GPT2ForSequenceClassification", "GPT2ForTokenClassification"},
       {"GPT2ForQuestionAnswering", "GPT2DoubleHeadsModel"}},
      {"llama",
       {"LlamaForCausalLM", "LlamaModel", "LlamaForSequenceClassification", "LlamaForTokenClassification"},
       {"LlamaForQuestionAnswering"}},
      {"mistral",
       {"MistralForCausalLM", "MistralModel", "MistralForSequenceClassification", "MistralForTokenClassification"},
       {"MistralForQuestionAnswering"}}};
  for (const Family& family : families) {
    const auto key = [](const std::string& name) { return R"("architectures": [")" + name + "\"]"; };
    for (const std::string& name : family.built) EXPECT_EQ(refused(family.type, key(name)), "") << name;
    for (const std::string& name : family.refused) {
      const std::string message = refused(family.type, key(name));
      EXPECT_THAT(message, ::testing::AllOf(HasSubstr("architectures"), HasSubstr("'" + name + "'"),
                                            HasSubstr("expected "), HasSubstr(family.built.front())));
      EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 0) << message;
    }
  }
}

TEST(HuggingFaceConfig, TheValuesOfTheNetworkBuiltHereAreAllowed) {
  const std::pair<std::string, std::string> cases[] = {
      {"llama",
       R"("pretraining_tp": 1, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}, "rope_theta": 500000.0)"},
      {"llama", R"("architectures": ["LlamaForCausalLM"], "initializer_range": 0.02, "torch_dtype": "bfloat16")"},
      {"llama", R"("rope_parameters": {"rope_type": "default", "partial_rotary_factor": 1.0}, "architectures": null)"},
      {"bert", R"("problem_type": "single_label_classification", "hidden_act": "gelu_new")"},
      {"mistral", R"("architectures": ["MistralForCausalLM"], "sliding_window": null, "head_dim": null)"},
      {"bert", R"("position_embedding_type": "absolute", "is_decoder": false, "classifier_dropout": null)"},
      {"gpt2",
       R"("scale_attn_weights": null, "quantization_config": null, "embd_pdrop": 0.1, "summary_type": "cls_index", "n_inner": null)"},
      {"gpt2", R"("bos_token_id": 50256, "_name_or_path": "gpt2", "transformers_version": "4.40.0")"}};
  for (const auto& [type, more] : cases) {
    EXPECT_EQ(refused(type, more), "") << more;
    EXPECT_TRUE(of_config(type, more).unread.empty()) << more;
  }
}

TEST(HuggingFaceConfig, DropoutsOfEmbeddingsAndOfBranchesAreEachTheirOwn) {
  const ModelDescription m = of_config("gpt2", R"("embd_pdrop": 0.0, "resid_pdrop": 0.1)");
  EXPECT_EQ(m.composition->stack.embedding_dropout, 0.0);
  EXPECT_EQ(m.composition->stack.dropout, 0.1);
}

TEST(HuggingFaceConfig, SequencesWithinTheWindowArePlainAndLongerOnesRefused) {
  const ModelDescription m = of_config("llama", R"("sliding_window": 32)");
  EXPECT_NO_THROW(check_window(m, 32));
  try {
    check_window(m, 33);
    FAIL() << "a longer sequence was taken";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("sliding_window"));
  }
  EXPECT_NO_THROW(check_window(of_config("llama", R"("sliding_window": 32, "use_sliding_window": false)"), 4096));
  EXPECT_NO_THROW(check_window(of_config("llama", R"("sliding_window": null)"), 4096));
}

TEST(HuggingFaceConfig, KeysThatNobodyKnowsAreNamed) {
  EXPECT_EQ(of_config("llama", R"("rope_scale_base": 8, "rope_theta": 1e6, "qk_norm": true)").unread,
            (std::vector<std::string>{"rope_scale_base", "qk_norm"}));
  EXPECT_EQ(of_config("llama", R"("_attn_implementation": "eager", "attn_implementation": "sdpa")").unread,
            (std::vector<std::string>{"_attn_implementation", "attn_implementation"}));
}

TEST(Models, AnOverrideChangesOneKey) {
  EXPECT_EQ(load_model("gpt2", {{"vocabulary", "50304", ""}}).vocabulary, 50304);
}

TEST(Models, MistakesNameThePlaceAndWhatIsAllowed) {
  const auto mistake = [](const char* yaml) -> std::string {
    try {
      load_model(config::Value(config::parse_yaml(yaml, "m.yaml")));
    } catch (const config::ConfigError& e) {
      return e.what();
    }
    return "no mistake was found";
  };
  EXPECT_THAT(mistake("{family: gpt2, layers: 2, heads: 3, hidden: 64, vocabulary: 10}"),
              HasSubstr("not a multiple of 3 heads"));
  EXPECT_THAT(mistake("{family: gtp2, layers: 2, heads: 2, hidden: 64, vocabulary: 10}"), HasSubstr("gpt2"));
  EXPECT_THAT(mistake("{family: gpt2, layers: 0, heads: 2, hidden: 64, vocabulary: 10}"), HasSubstr("m.yaml:1:"));
  EXPECT_THAT(mistake("{family: gpt2, layers: 2, heads: 2, hidden: 64, vocabulary: 10, hiden: 3}"),
              HasSubstr("hidden"));
  EXPECT_THAT(mistake("{family: gpt2, layers: 2, heads: 2, hidden: 64, vocabulary: 10, head: masked-lm}"),
              HasSubstr("only family bert"));
  EXPECT_THAT(mistake("{family: llama, layers: 2, heads: 4, key_value_heads: 3, hidden: 64, vocabulary: 10}"),
              HasSubstr("evenly"));
  EXPECT_THAT(mistake("{family: gpt2, layers: 2, heads: 2, hidden: 64, vocabulary: 10, dropout: .nan}"),
              HasSubstr("dropout"));
  EXPECT_THAT(mistake("gtp2"), HasSubstr("did you mean gpt2?"));
}

// Patches are cut out by a convolution: a product of a patch's numbers for each of them. Three passes of two FLOPs
// each.
TEST(Models, FlopsOfPatchesAreThoseOfTheirProduct) {
  const auto flops = [](int patch, int side) {
    const std::string yaml =
        "{family: composed, layers: 1, heads: 2, hidden: 16, input: image, class_token: false, "
        "head: image-classification, pooler: dense-tanh, labels: 3, causal: false, positions: "
        "learned, tie_embeddings: false, patch: " +
        std::to_string(patch) + ", image_size: " + std::to_string(patch * side) + "}";
    return model_flops(load_model(config::Value(config::parse_yaml(yaml, "m.yaml"))), 5, side * side);
  };
  for (const int side : {2, 7})
    for (const int patch : {4, 8, 14})
      EXPECT_NEAR(flops(patch, side) - flops(2, side), 3.0 * 2.0 * 5 * side * side * 16 * 3 * (patch * patch - 2 * 2),
                  1.0);
}

}  // namespace
}  // namespace ridgeline

#include "sim/workload/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/config/parse_yaml.h"
#include "sim/workload/load_model.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using testing::HasSubstr;

TEST(Models, ParameterCountsAreThePublishedOnes) {
  // GPT-2: HuggingFace checkpoints; BERT: BertForSequenceClassification with two labels; LLaMA 7B: its checkpoint.
  const std::pair<const char*, std::int64_t> published[] = {
      {"bert-base", 109483778},  {"bert-large", 335143938}, {"gpt2", 124439808},      {"gpt2-medium", 354823168},
      {"gpt2-large", 774030080}, {"gpt2-xl", 1557611200},   {"llama-7b", 6738415616}, {"nanogpt-char", 10745088}};
  for (const auto& [name, count] : published) EXPECT_EQ(parameter_count(load_model(name)), count) << name;
  EXPECT_EQ(model_names().size(), std::size(published)) << "every shipped model is listed here";
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
  EXPECT_THAT(mistake("gpt-2"), HasSubstr("did you mean 'gpt2'"));
}

}  // namespace
}  // namespace ridgeline

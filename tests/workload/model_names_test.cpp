// Networks by the names that people give them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "sim/config/data_folder.h"
#include "sim/config/shipped_names.h"
#include "sim/units/user_error.h"
#include "sim/workload/load_model.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refused(const std::string& name) {
  try {
    return "is " + load_model(name).name;
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(ModelNames, AreTakenAsPeopleSpellThem) {
  const std::map<std::string, std::vector<std::string>> spellings{
      {"llama-3.1-8b",
       {"meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct", "Meta-Llama-3.1-8B", "Llama 3.1 8B",
        "llama3.1:8b", "llama-3-1-8b", "LLAMA_3.1_8B", "unsloth/Llama-3.1-8B"}},
      {"llama-3-8b",
       {"llama3-8b", "Meta-Llama-3-8B", "meta-llama/Meta-Llama-3-8B-Instruct", "llama3:8b", "Llama 3 8B"}},
      {"llama-3.2-1b", {"meta-llama/Llama-3.2-1B", "llama3.2-1b"}},
      {"llama-3.3-70b", {"llama3.3", "meta-llama/Llama-3.3-70B-Instruct"}},
      {"llama-2-7b", {"Llama-2-7b-hf", "meta-llama/Llama-2-7b-chat-hf", "llama2-7b", "llama2 7B"}},
      {"mistral-7b",
       {"mistralai/Mistral-7B-v0.3", "mistral", "Mistral-7B-Instruct", "mistralai/Mistral-7B-Instruct-v0.3"}},
      {"mistral-7b-v0.1", {"mistralai/Mistral-7B-v0.1", "Mistral 7B v0.1"}},
      {"mixtral-8x7b", {"mistralai/Mixtral-8x7B-v0.1", "Mixtral 8x7B", "mixtral"}},
      {"qwen2.5-7b", {"Qwen/Qwen2.5-7B-Instruct", "Qwen 2.5 7B", "qwen2.5:7b", "qwen2-5-7b"}},
      {"qwen3-0.6b", {"Qwen/Qwen3-0.6B", "qwen3-0.6b-base", "Qwen3 0.6B"}},
      {"phi-4", {"microsoft/phi-4", "phi4", "Phi 4"}},
      {"gemma-2-9b", {"google/gemma-2-9b-it", "gemma2-9b", "gemma2:9b"}},
      {"gemma-3-27b", {"google/gemma-3-27b-it", "google/gemma-3-27b-pt", "Gemma 3 27B"}},
      {"smollm3-3b", {"HuggingFaceTB/SmolLM3-3B", "SmolLM3", "smollm3-3b-base"}},
      {"deepseek-v3", {"deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-R1", "deepseek v3", "DeepSeekV3"}},
      {"gpt-oss-20b", {"openai/gpt-oss-20b", "gpt-oss:20b", "GPT OSS 20B"}},
      {"gpt2", {"gpt-2", "GPT2", "openai-community/gpt2", "gpt2-small"}},
      {"gpt2-xl", {"GPT2-XL", "gpt2 xl", "openai-community/gpt2-xl"}},
      {"bert-base", {"bert-base-uncased", "google-bert/bert-base-uncased", "BERT-Base", "BERT base"}},
      {"distilbert-base", {"distilbert-base-uncased", "distilbert/distilbert-base-uncased", "DistilBERT"}},
      {"roberta-base", {"FacebookAI/roberta-base", "RoBERTa"}},
      {"modernbert-base", {"answerdotai/ModernBERT-base"}},
      {"deberta-v3-base", {"microsoft/deberta-v3-base", "DeBERTa-v3 base"}},
      {"vit-base", {"google/vit-base-patch16-224", "ViT-B", "ViT-B/16", "vit_b_16"}},
      {"vit-huge", {"ViT-H", "vit_h_14"}},
      {"whisper-large-v3", {"openai/whisper-large-v3", "Whisper large v3"}},
      {"whisper-base", {"openai/whisper-base"}},
      {"whisper-large-v2", {"openai/whisper-large", "whisper large v2"}},
      {"t5-base", {"google-t5/t5-base", "T5-Base"}},
      {"resnet-50", {"resnet50", "ResNet 50", "microsoft/resnet-50"}}};
  for (const auto& [name, given] : spellings)
    for (const std::string& one : given) EXPECT_EQ(refused(one), "is " + name) << one;
}

TEST(ModelNames, ThatAreIncompleteListTheSizes) {
  EXPECT_THAT(refused("llama3"), HasSubstr("did you mean llama-3-70b, llama-3-8b?"));
  EXPECT_THAT(refused("qwen3"), AllOf(HasSubstr("qwen3-0.6b"), HasSubstr("qwen3-8b"), Not(HasSubstr("qwen2.5"))));
  EXPECT_THAT(refused("gemma-3"), AllOf(HasSubstr("gemma-3-1b"), Not(HasSubstr("gemma-2"))));
}

// A name that differs in a digit, or in a letter that makes a word of its own, is another network.
TEST(ModelNames, AreNeverAnsweredByAnotherNetwork) {
  for (const std::string name : {"bart-base",
                                 "llava-7b",
                                 "mbert-base",
                                 "mistral-8b",
                                 "llama-9b",
                                 "gemma-9b",
                                 "qwen2-7b",
                                 "opt-125m",
                                 "gptj",
                                 "albert-base",
                                 "git-large",
                                 "phi-5",
                                 "t6-base",
                                 "mt5-base",
                                 "whisper-huge",
                                 "nobody/network-7b",
                                 "bloom-7b",
                                 "falcon-7b",
                                 "mamba-2.8b",
                                 "smolvlm-256m",
                                 "distilroberta-base",
                                 "deit-base",
                                 "deberta-base",
                                 "llama-38b",
                                 "",
                                 "-",
                                 "ü"})
    EXPECT_THAT(refused(name), AllOf(Not(HasSubstr("did you mean")), HasSubstr("save its config.json"))) << name;
}

TEST(ModelNames, WithASlipAreGuessed) {
  for (const auto& [given, name] : std::map<std::string, std::string>{{"gtp2", "gpt2"},
                                                                      {"lama-3-8b", "llama-3-8b"},
                                                                      {"bert-larg", "bert-large"},
                                                                      {"mistrall-7b", "mistral-7b"},
                                                                      {"mixtrla-8x7b", "mixtral-8x7b"},
                                                                      {"wisper-small", "whisper-small"}})
    EXPECT_THAT(refused(given), HasSubstr("did you mean " + name + "?")) << given;
}

TEST(ModelNames, NoTwoFilesClaimTheSameSpelling) {
  std::map<std::string, std::string> claimed;
  for (const char* folder : {"", "blocks"})
    for (const config::ShippedName& one : config::shipped_names(config::data_folder("models") / folder))
      for (const std::string& spelling : one.spellings) {
        const auto [other, is_new] = claimed.emplace(spelling_key(spelling, model_spelling()), one.name);
        EXPECT_TRUE(is_new || other->second != one.name) << one.name << " says '" << spelling << "' twice";
        EXPECT_TRUE(is_new || other->second == one.name)
            << "'" << spelling << "' is claimed by " << other->second << " and " << one.name;
      }
  EXPECT_GT(claimed.size(), 100u);
}

TEST(ModelNames, OfAFolderWithAConfigurationAreThatNetwork) {
  const std::filesystem::path folder = temporary_path("checkpoint");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json")
      << R"({"model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 64, "vocab_size": 100})";
  EXPECT_EQ(load_model(folder.string()).name, "checkpoint");
}

}  // namespace
}  // namespace ridgeline

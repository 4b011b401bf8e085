// Configurations of Transformers that leave keys out or write them otherwise.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/units/user_error.h"
#include "sim/workload/families/count.h"
#include "sim/workload/load_model.h"
#include "tests/support/described_network.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ridgeline::testing::described_network;

// configuration_mistral.py, configuration_mixtral.py, configuration_qwen2_moe.py, configuration_phimoe.py of
// Transformers: a key that a file leaves out means what the class's signature says, also behind another name.
TEST(FamilyDefaults, AKeyThatIsLeftOutMeansWhatTheClassOfTransformersMeans) {
  const auto parameters = [](const json& config) { return families::count_parameters(described_network(config)); };
  struct Left {
    const char *type, *key;
    json value;
  };
  for (const Left& left :
       {Left{"mistral", "intermediate_size", 14336}, Left{"mistral", "num_key_value_heads", 8},
        Left{"mixtral", "num_local_experts", 8}, Left{"mixtral", "intermediate_size", 14336},
        Left{"mixtral", "num_key_value_heads", 8}, Left{"qwen3", "head_dim", 128},
        Left{"qwen2_moe", "moe_intermediate_size", 1408}, Left{"starcoder2", "num_key_value_heads", 2},
        Left{"gemma2", "head_dim", 256}, Left{"phimoe", "num_local_experts", 16},
        Left{"llama", "intermediate_size", 11008}, Left{"bert", "intermediate_size", 3072},
        Left{"roberta", "vocab_size", 50265}, Left{"bert", "type_vocab_size", 2}}) {
    json whole = {{"model_type", left.type}, {"num_hidden_layers", 2}, {left.key, left.value}}, without = whole;
    without.erase(left.key);
    EXPECT_EQ(parameters(whole), parameters(without)) << left.type << " without " << left.key;
  }
  json renamed = {{"model_type", "mixtral"}, {"num_hidden_layers", 2}, {"num_experts", 4}}, named = renamed;
  named.erase("num_experts");
  named["num_local_experts"] = 4;
  EXPECT_EQ(parameters(renamed), parameters(named));
  // A table like another one's has its own defaults, or none.
  EXPECT_NE(parameters({{"model_type", "llama"}, {"num_hidden_layers", 2}}),
            parameters({{"model_type", "mistral"}, {"num_hidden_layers", 2}}));
}

// A file goes through load_model(), which refuses what a description of a part only lists.
TEST(FamilyDefaults, AKeyThatNothingReadsAndThatMayMakeAnotherNetworkIsRefused) {
  const std::string path = temporary_path("config.json");
  const auto refused = [&](const char* key, const json& value) {
    std::ofstream(path) << json{{"model_type", "mistral"}, {"num_hidden_layers", 2}, {key, value}};
    try {
      (void)load_model(path);
    } catch (const UserError& error) {
      return std::string(error.what()).find(key) != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refused("extra_norm_layers", 3));
  EXPECT_TRUE(refused("n_shared_experts", 2));
  EXPECT_TRUE(refused("mixture_of_depths", true));
  EXPECT_FALSE(refused("extra_norm_layers", 0));
  EXPECT_FALSE(refused("n_shared_experts", nullptr));
  EXPECT_FALSE(refused("somebody", "me"));
  std::filesystem::remove(path);
}

TEST(FamilyDefaults, ClassNamesOf2023AndBackbonesAreBuilt) {
  const auto head = [](const char* type, const char* name) {
    return families::count_parameters(
        described_network({{"model_type", type}, {"num_hidden_layers", 2}, {"architectures", {name}}}));
  };
  EXPECT_EQ(head("mistral", "MISTRALForCausalLM"), head("mistral", "MistralForCausalLM"));
  EXPECT_EQ(head("olmo2", "Olmo2Model"), head("olmo2", "Olmo2ForCausalLM"));
}

}  // namespace
}  // namespace ridgeline

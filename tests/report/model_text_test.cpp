// What `ridgeline models NAME` says of a network.
#include "sim/report/text/model_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "sim/config/parse_yaml.h"
#include "sim/workload/composition_keys.h"
#include "sim/workload/load_model.h"
#include "sim/workload/model_keys.h"

namespace ridgeline {
namespace {

ModelDescription described(const std::string& yaml) {
  const config::Node tree = config::parse_yaml(yaml, "m.yaml");
  return load_model(config::Value(tree));
}

TEST(ModelText, ShowsEveryKeyOfAFamilyWithItsValueAndWhatIsAssumed) {
  for (const std::string& name : model_names()) {
    const ModelDescription model = load_model(name);
    const nlohmann::ordered_json told = model_json(model);
    const std::string text = model_text(model);
    if (model.composition.given()) {  // its keys are those of a stack; the text shows those that are not as assumed
      for (const CompositionKey& key : composition_keys())
        EXPECT_TRUE(told.contains(key.name)) << name << " " << key.name;
      EXPECT_NE(text.find("\n  hidden "), std::string::npos) << name;
      continue;
    }
    for (const ModelKey& key : model_keys()) {
      const bool read = !key.only_of || *key.only_of == model.family;
      EXPECT_EQ(told.contains(key.name), read) << name << " " << key.name;
      EXPECT_EQ(text.find("\n  " + std::string(key.name) + " ") != std::string::npos, read) << name << " " << key.name;
    }
  }
}

/// Keys of a stack as a mapping in YAML; lists are told as text.
std::string stack_as_yaml(const nlohmann::ordered_json& told) {
  std::string yaml;
  for (const CompositionKey& key : composition_keys()) {
    const auto& value = told[key.name];
    const bool list = value.is_string() && value.get<std::string>().starts_with('[');
    yaml +=
        (yaml.empty() ? "" : ", ") + std::string(key.name) + ": " + (list ? value.get<std::string>() : value.dump());
  }
  return yaml;
}

TEST(ModelText, WhatItShowsOfACompositionIsADescriptionOfIt) {
  int compositions = 0;
  for (const std::string& name : model_names()) {
    const ModelDescription model = load_model(name);
    if (!model.composition.given()) continue;
    ++compositions;
    const nlohmann::ordered_json told = model_json(model);
    std::string yaml = "{name: " + name + ", family: composed, " + stack_as_yaml(told);
    if (told.contains("encoder")) yaml += ", encoder: {" + stack_as_yaml(told["encoder"]) + "}";
    EXPECT_EQ(model_json(described(yaml + "}")), told) << yaml;
  }
  EXPECT_GT(compositions, 4);
}

TEST(ModelText, WhatItShowsIsADescriptionOfTheSameModel) {
  for (const std::string& name : model_names()) {
    const ModelDescription model = load_model(name);
    if (model.composition.given()) continue;
    const nlohmann::ordered_json told = model_json(model);
    std::string yaml = "name: " + name + "\n";
    for (const ModelKey& key : model_keys())
      if (told.contains(key.name) && told[key.name] != "as the software")
        yaml += std::string(key.name) + ": " + told[key.name].dump() + "\n";
    EXPECT_EQ(described(yaml), model) << yaml;
  }
}

TEST(ModelText, WhatIsAssumedFollowsTheFamilyAndTheOtherKeys) {
  const auto defaults = [](const std::string& yaml) { return model_json(described(yaml))["defaults"]; };
  const auto llama =
      defaults("{family: llama, layers: 2, heads: 4, hidden: 64, vocabulary: 10, dropout: 0.2, bias: true}");
  EXPECT_EQ(llama["feed_forward"], 256);
  EXPECT_EQ(llama["key_value_heads"], 4);
  EXPECT_EQ(llama["dropout"], 0.0);
  EXPECT_EQ(llama["attention_dropout"], 0.2);
  EXPECT_EQ(llama["bias"], false);
  EXPECT_FALSE(llama.contains("layers")) << "must be said";
  const auto bert = defaults("{family: bert, layers: 2, heads: 4, hidden: 64, vocabulary: 10, sequence_first: true}");
  EXPECT_EQ(bert["dropout"], 0.1);
  EXPECT_EQ(bert["sequence_first"], false);
  EXPECT_EQ(bert["adds_mask"], "as the software");
}

// 110 x 64 of tokens, 128 x 64 of positions and 2 x 64 of the last norm are 15,360. A block has 4 x 64 x 64 and 4 x 64
// of the attention, 2 x 64 x 256, 256 and 64 of the feed-forward network and 4 x 64 of its norms: 49,984.
TEST(ModelText, ParametersAreCountedInGroupsOfThree) {
  const auto model = [](const std::string& layers) {
    return described("{name: n, family: gpt2, layers: " + layers +
                     ", heads: 4, hidden: 64, vocabulary: 110, max_positions: 128}");
  };
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  EXPECT_EQ(first_line(model_text(model("1"))), "n: 65,344 parameters");
  EXPECT_EQ(first_line(model_text(model("2"))), "n: 115,328 parameters");
  EXPECT_EQ(first_line(model_text(model("100"))), "n: 5,013,760 parameters");
  const std::vector<ModelDescription> two{model("3"), load_model("bert-large")};
  EXPECT_EQ(model_list(two),
            "name             family  layers  heads  hidden   inner vocabulary     parameters\n"
            "n                gpt2         3      4      64     256        110        165,312\n"
            "bert-large       bert        24     16    1024    4096      30522    335,143,938\n");
}

TEST(ModelText, FitsAHundredColumns) {
  for (const std::string& name : model_names()) {
    std::istringstream lines(model_text(load_model(name)));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

}  // namespace
}  // namespace ridgeline

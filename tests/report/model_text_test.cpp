// What `ridgeline models NAME` says of a network.
#include "sim/report/text/model_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/config/parse_yaml.h"
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
    const nlohmann::ordered_json json = model_json(model);
    const std::string text = model_text(model);
    for (const ModelKey& key : model_keys()) {
      const bool read = !key.only_of || *key.only_of == model.family;
      EXPECT_EQ(json.contains(key.name), read) << name << " " << key.name;
      EXPECT_EQ(text.find("\n  " + std::string(key.name) + " ") != std::string::npos, read) << name << " " << key.name;
    }
  }
}

TEST(ModelText, WhatItShowsIsADescriptionOfTheSameModel) {
  for (const std::string& name : model_names()) {
    const ModelDescription model = load_model(name);
    const nlohmann::ordered_json json = model_json(model);
    std::string yaml = "name: " + name + "\n";
    for (const ModelKey& key : model_keys())
      if (json.contains(key.name) && json[key.name] != "as the software")
        yaml += std::string(key.name) + ": " + json[key.name].dump() + "\n";
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

TEST(ModelText, FitsAHundredColumns) {
  for (const std::string& name : model_names()) {
    std::istringstream lines(model_text(load_model(name)));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

}  // namespace
}  // namespace ridgeline

// The schema is that of the readers: it knows their keys, forms and bounds, and every key says what it means.
#include "sim/report/schema/schema_json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/config/override.h"
#include "sim/config/parse_yaml.h"
#include "sim/report/schema/explore_keys.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using config::Asked;

const std::vector<InputDocument>& documents() {
  static const std::vector<InputDocument> all = input_documents();
  return all;
}

const InputKey& key_of(std::string_view document, std::string_view path) {
  for (const InputDocument& one : documents())
    if (one.name == document)
      for (const InputKey& key : one.keys)
        if (key.path == path) return key;
  throw std::out_of_range(std::string(document) + " has no " + std::string(path));
}

TEST(Schema, EveryKeyHasAMeaningAndEveryMeaningAKey) {
  std::set<std::pair<std::string, std::string>> keys;
  for (const InputDocument& document : documents())
    for (const InputKey& key : document.keys) {
      EXPECT_FALSE(key.meaning.empty()) << document.name << ": " << key.path << " (sim/report/schema/key_meanings.cpp)";
      EXPECT_TRUE(keys.emplace(document.name, key.path).second) << key.path << " twice";
    }
  for (const KeyMeaning& one : key_meanings())
    EXPECT_TRUE(keys.contains({std::string(one.document), std::string(one.path)})) << one.document << ": " << one.path;
}

TEST(Schema, FormsBoundsAndWordsAreThoseOfTheReaders) {
  const InputKey& batch = key_of("scenario", "training.micro_batch");
  ASSERT_TRUE(batch.form(Asked::Kind::integer));
  EXPECT_EQ(batch.form(Asked::Kind::integer)->integers.low, 1);
  EXPECT_EQ(allowed_values(key_of("scenario", "training.compile")), "true or false");
  EXPECT_EQ(key_of("scenario", "training.gradient_clipping").words, std::vector<std::string>{"none"});
  const InputKey& optimizer = key_of("scenario", "training.optimizer");
  EXPECT_TRUE(optimizer.form(Asked::Kind::choice) && optimizer.form(Asked::Kind::mapping));
  EXPECT_FALSE(key_of("scenario", "hardware").required);  // a cluster can stand in its place
  EXPECT_FALSE(key_of("scenario", "host").required);
  EXPECT_FALSE(key_of("model", "layers").required);  // a program has sizes of its own
  EXPECT_TRUE(key_of("sweep", "axes").required);
  EXPECT_TRUE(key_of("software", "foreach_tensors_per_launch").form(Asked::Kind::list));
  EXPECT_TRUE(key_of("host", "classes.linear").described);
  EXPECT_EQ(key_of("hardware", "dram.bandwidth").form(Asked::Kind::measure)->dimension, Dimension::bytes_per_second);
}

TEST(Schema, AReaderThatGainsAKeyIsAskedForIt) {
  const auto keys_with = [](bool more) {
    return explore_keys({.read = [more](const std::vector<config::Override>& changes, const std::string&) {
      config::Node tree = config::parse_yaml("{a: 1}", "test");
      for (const config::Override& change : changes) config::apply_override(tree, change);
      std::vector<std::string> names{"a"};
      if (more) names.emplace_back("b");
      const config::Mapping root(config::Value(tree), names);
      (void)root["a"].integer({0, 9});
      if (more) (void)root["b"].number({0.0, 1.0}, 0.5);
    }});
  };
  EXPECT_EQ(keys_with(false).size(), 1u);
  const std::vector<InputKey> two = keys_with(true);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(allowed_values(two[0]), "0 to 9");
  EXPECT_EQ(allowed_values(two[1]), "a number or %, 0 to 1");
}

TEST(Schema, ThePageOfKeysIsTodays) {
  std::ifstream file(RIDGELINE_SOURCE_DIR "/docs/keys.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(page, keys_markdown(documents())) << "run `build/ridgeline schema --keys > docs/keys.md`";
}

TEST(Schema, docs_list_the_keys_of_other_tools) {
  std::ifstream file(RIDGELINE_SOURCE_DIR "/docs/tools.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(page, tools_markdown()) << "run `build/ridgeline schema --tools > docs/tools.md`";
}

TEST(Schema, NamesLeadToDefinitionsAndUnknownOnesToTheNearest) {
  for (const std::string& name : schema_names(documents())) {
    const auto schema = schema_json(documents(), name);
    EXPECT_EQ(schema["$ref"], "#/$defs/" + name);
    EXPECT_TRUE(schema["$defs"].contains(name));
  }
  try {
    (void)schema_json(documents(), "scenaro");
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean scenario?"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ridgeline

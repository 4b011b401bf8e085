// The schema and the table of a document made by hand, which has every form that a value may have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/report/schema/schema_json.h"

namespace ridgeline {
namespace {

using config::Asked;
using nlohmann::json;
using ::testing::HasSubstr;

constexpr double kNoLow = std::numeric_limits<double>::lowest(), kNoHigh = std::numeric_limits<double>::max();
constexpr std::int64_t kNoLeast = std::numeric_limits<std::int64_t>::min(),
                       kNoMost = std::numeric_limits<std::int64_t>::max();
const std::string kDigits = R"(^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)";

InputKey form_key(const char* path, std::vector<Asked> forms) { return {.path = path, .asked = std::move(forms)}; }
Asked form_integer(std::int64_t low, std::int64_t high) {
  return {.kind = Asked::Kind::integer, .integers = {low, high}};
}
Asked form_number(double low, double high, bool open = false) {
  return {.kind = Asked::Kind::measure, .range = {low, high, open}};
}
Asked form_bytes(double low, double high, bool open = false) {
  return {.kind = Asked::Kind::measure, .dimension = Dimension::bytes, .range = {low, high, open}};
}

/// The definition of a document of these keys.
json definition(std::vector<InputKey> keys) {
  const std::vector<InputDocument> documents{{"made", "a file made by hand", std::move(keys)}};
  return json(schema_json(documents, "made"))["$defs"]["made"];
}
json property(InputKey key) {
  const std::string path = key.path;
  const json whole = definition({std::move(key)});
  EXPECT_EQ(whole["additionalProperties"], false);
  return whole["properties"][path];
}

TEST(SchemaForms, EachFormHasItsType) {
  EXPECT_EQ(property(form_key("a", {})), json::object()) << "anything";
  EXPECT_EQ(property(form_key("a", {{.kind = Asked::Kind::text}})), (json{{"type", {"string", "number", "boolean"}}}));
  EXPECT_EQ(property(form_key("a", {{.kind = Asked::Kind::flag}})), (json{{"type", "boolean"}}));
  EXPECT_EQ(property(form_key("a", {{.kind = Asked::Kind::list}})), (json{{"type", "array"}}));
  EXPECT_EQ(property(form_key("a", {{.kind = Asked::Kind::choice, .names = {"x", "y"}}})),
            (json{{"enum", {"x", "y"}}}));
  EXPECT_EQ(property(form_key("a", {{.kind = Asked::Kind::mapping}})),
            (json{{"type", "object"}, {"additionalProperties", false}}));
}

TEST(SchemaForms, IntegersHaveTheBoundsThatThereAre) {
  EXPECT_EQ(property(form_key("a", {form_integer(kNoLeast, kNoMost)})), (json{{"type", "integer"}}));
  EXPECT_EQ(property(form_key("a", {form_integer(2, kNoMost)})), (json{{"type", "integer"}, {"minimum", 2}}));
  EXPECT_EQ(property(form_key("a", {form_integer(kNoLeast, 7)})), (json{{"type", "integer"}, {"maximum", 7}}));
  EXPECT_EQ(property(form_key("a", {form_integer(2, 7)})), (json{{"type", "integer"}, {"minimum", 2}, {"maximum", 7}}));
}

TEST(SchemaForms, NumbersMayBeShares) {
  const auto number = [](json bounds) {
    bounds["type"] = "number";
    return json{{"anyOf", {bounds, {{"type", "string"}, {"pattern", kDigits + " ?[%x]$"}}}}};
  };
  EXPECT_EQ(property(form_key("a", {form_number(kNoLow, kNoHigh)})), number(json::object()));
  EXPECT_EQ(property(form_key("a", {form_number(0.5, kNoHigh)})), number({{"minimum", 0.5}}));
  EXPECT_EQ(property(form_key("a", {form_number(0.5, kNoHigh, true)})), number({{"exclusiveMinimum", 0.5}}));
  EXPECT_EQ(property(form_key("a", {form_number(kNoLow, 2.5)})), number({{"maximum", 2.5}}));
  EXPECT_EQ(property(form_key("a", {form_number(0, 2.5)})), number({{"minimum", 0.0}, {"maximum", 2.5}}));
  EXPECT_EQ(property(form_key("a", {form_bytes(0, 5)})),
            (json{{"type", "string"}, {"pattern", kDigits + " ?[A-Za-zµ][A-Za-z/]*$"}}))
      << "the unit is written";
}

TEST(SchemaForms, SeveralFormsAreAnyOfThem) {
  InputKey key = form_key("a", {form_integer(1, 3), {.kind = Asked::Kind::flag}});
  EXPECT_EQ(property(key),
            (json{{"anyOf", {{{"type", "integer"}, {"minimum", 1}, {"maximum", 3}}, {{"type", "boolean"}}}}}));
  key.zero_is_none = true, key.words = {"none", "all"}, key.document = "hardware";
  EXPECT_EQ(property(key), (json{{"anyOf",
                                  {{{"type", "integer"}, {"minimum", 1}, {"maximum", 3}},
                                   {{"type", "boolean"}},
                                   {{"const", 0}},
                                   {{"const", "none"}},
                                   {{"const", "all"}},
                                   {{"$ref", "#/$defs/hardware"}}}}}));
  InputKey word = form_key("a", {});
  word.words = {"none"};
  EXPECT_EQ(property(word), (json{{"const", "none"}})) << "one form stands by itself";
}

TEST(SchemaForms, WhatHasASourceIsAnObjectOrTheValueAlone) {
  InputKey key = form_key("a", {{.kind = Asked::Kind::flag}});
  key.described = true;
  const json sourced{{"type", "object"},
                     {"properties",
                      {{"value", {{"type", "boolean"}}},
                       {"source", {{"type", "string"}, {"minLength", 1}}},
                       {"spread",
                        {{"anyOf",
                          {{{"type", "number"}, {"minimum", 0.0}, {"maximum", 1.0}},
                           {{"type", "string"}, {"pattern", kDigits + " ?[%x]$"}}}}}},
                       {"note", {{"type", "string"}}}}},
                     {"required", {"value", "source"}},
                     {"additionalProperties", false}};
  EXPECT_EQ(property(key), sourced);
  key.bare = true;
  EXPECT_EQ(property(key), (json{{"anyOf", {{{"type", "boolean"}}, sourced}}}));
}

TEST(SchemaForms, AMeaningStandsWithWhatMayBeWritten) {
  InputKey key = form_key("a", {form_integer(1, 3)});
  key.meaning = "how many";
  EXPECT_EQ(property(key),
            (json{{"description", "how many (1 to 3)"}, {"type", "integer"}, {"minimum", 1}, {"maximum", 3}}));
}

// A section with a key that it must have, names that the file chooses, and a list of objects.
TEST(SchemaForms, PathsBecomeObjectsInObjects) {
  std::vector<InputKey> keys{form_key("b.first", {{.kind = Asked::Kind::flag}}),
                             form_key("b.second", {form_integer(1, 9)}),
                             form_key("c.*", {form_integer(2, 9)}),
                             form_key("d", {{.kind = Asked::Kind::list}}),
                             form_key("d.0", {form_integer(3, 9)}),
                             form_key("e", {{.kind = Asked::Kind::mapping}}),
                             form_key("e.f", {form_integer(4, 9)}),
                             form_key("g", {{.kind = Asked::Kind::text}}),
                             form_key("g.h", {form_integer(5, 9)})};
  keys[0].required = keys[3].required = true;
  const auto integer = [](int low) { return json{{"type", "integer"}, {"minimum", low}, {"maximum", 9}}; };
  EXPECT_EQ(
      definition(keys),
      (json{{"title", "made"},
            {"description", "a file made by hand"},
            {"type", "object"},
            {"properties",
             {{"b",
               {{"type", "object"},
                {"properties", {{"first", {{"type", "boolean"}}}, {"second", integer(1)}}},
                {"required", {"first"}},
                {"additionalProperties", false}}},
              {"c", {{"type", "object"}, {"additionalProperties", integer(2)}}},
              {"d", {{"type", "array"}, {"items", integer(3)}}},
              {"e", {{"type", "object"}, {"properties", {{"f", integer(4)}}}, {"additionalProperties", false}}},
              {"g",
               {{"anyOf",
                 {{{"type", {"string", "number", "boolean"}}},
                  {{"type", "object"}, {"properties", {{"h", integer(5)}}}, {"additionalProperties", false}}}}}}}},
            {"required", {"d"}},
            {"additionalProperties", false}}));
}

TEST(SchemaForms, ValuesInWords) {
  const auto words = [](const Asked& form) { return allowed_values(form_key("a", {form})); };
  EXPECT_EQ(words(form_integer(kNoLeast, kNoMost)), "a whole number");
  EXPECT_EQ(words(form_integer(2, kNoMost)), "a whole number, at least 2");
  EXPECT_EQ(words(form_integer(kNoLeast, 7)), "a whole number, at most 7");
  EXPECT_EQ(words(form_integer(2, 7)), "2 to 7");
  EXPECT_EQ(words(form_number(kNoLow, kNoHigh)), "a number or %");
  EXPECT_EQ(words(form_number(0, kNoHigh)), "a number or %, at least 0");
  EXPECT_EQ(words(form_number(0, kNoHigh, true)), "a number or %, above 0");
  EXPECT_EQ(words(form_number(kNoLow, 2.5)), "a number or %, at most 2.5");
  EXPECT_EQ(words(form_number(0.5, 2.5)), "a number or %, 0.5 to 2.5");
  EXPECT_EQ(words(form_number(0.5, 2.5, true)), "a number or %, above 0.5 to 2.5");
  EXPECT_THAT(words(form_bytes(0, 1073741824)), HasSubstr("), 0 to 1.00 GiB"));
  EXPECT_EQ(words({.kind = Asked::Kind::text}), "a text");
  EXPECT_EQ(words({.kind = Asked::Kind::flag}), "true or false");
  EXPECT_EQ(words({.kind = Asked::Kind::list}), "a list");
  EXPECT_EQ(words({.kind = Asked::Kind::mapping}), "keys");
  EXPECT_EQ(words({.kind = Asked::Kind::choice, .names = {"x", "y"}}), "x, y");
  InputKey all = form_key("a", {form_integer(1, 3), {.kind = Asked::Kind::flag}});
  all.zero_is_none = true, all.words = {"none"}, all.document = "model";
  EXPECT_EQ(allowed_values(all), "0; or 1 to 3; or true or false; or none; or keys of a model");
  EXPECT_EQ(allowed_values(form_key("a", {})), "keys");
}

TEST(SchemaForms, TheTableOfKeysHasARowEach) {
  std::vector<InputKey> keys{form_key("a", {form_integer(1, 3)}),
                             form_key("b.*.c", {{.kind = Asked::Kind::flag}}),
                             form_key("b.*.d.*", {{.kind = Asked::Kind::text}}),
                             form_key("e", {{.kind = Asked::Kind::list}}),
                             form_key("e.0", {form_integer(1, 2)}),
                             form_key("classes.x", {{.kind = Asked::Kind::flag}}),
                             form_key("classes.y", {{.kind = Asked::Kind::flag}})};
  keys[0].required = true;
  for (InputKey& key : keys) key.meaning = "m" + key.path;
  const std::vector<InputDocument> documents{{"host", "first", keys}, {"hardware", "second", {keys[5]}}};
  const std::string page = keys_markdown(documents);
  EXPECT_EQ(page.substr(page.find("\n## host")), R"(
## host: first

| key | may be | meaning |
|---|---|---|
| **a** | 1 to 3 | ma |
| b.NAME.c | true or false | mb.NAME.c |
| b.NAME.d.NAME | a text | mb.NAME.d.NAME |
| e | a list | me |

Classes: x, y.

## hardware: second

Laws that read them, and which way is better: [hardware-keys.md](hardware-keys.md).

| key | may be | meaning |
|---|---|---|
| classes.x | true or false | mclasses.x |
)");
}

}  // namespace
}  // namespace ridgeline

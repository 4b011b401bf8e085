#include "sim/report/schema/schema_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "sim/config/data_folder.h"
#include "sim/input/text_source.h"
#include "sim/units/meant_name.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using config::Asked;
using nlohmann::ordered_json;

constexpr const char* kDraft = "https://json-schema.org/draft/2020-12/schema";
constexpr const char* kNumber = R"(^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)";

ordered_json integer(const Asked& asked) {
  ordered_json schema{{"type", "integer"}};
  if (asked.integers.low != std::numeric_limits<std::int64_t>::min()) schema["minimum"] = asked.integers.low;
  if (asked.integers.high != std::numeric_limits<std::int64_t>::max()) schema["maximum"] = asked.integers.high;
  return schema;
}

ordered_json measure(const Asked& asked) {
  if (asked.dimension != Dimension::dimensionless)  // the unit is mandatory, the range in base units is not seen
    return {{"type", "string"}, {"pattern", fmt::format("{} ?[A-Za-zµ][A-Za-z/]*$", kNumber)}};
  ordered_json number{{"type", "number"}};
  if (asked.range.low != std::numeric_limits<double>::lowest())
    number[asked.range.low_open ? "exclusiveMinimum" : "minimum"] = asked.range.low;
  if (asked.range.high != std::numeric_limits<double>::max()) number["maximum"] = asked.range.high;
  return {{"anyOf", {number, {{"type", "string"}, {"pattern", fmt::format("{} ?[%x]$", kNumber)}}}}};
}

/// A key and those below it.
struct Tree {
  std::string name;
  const InputKey* key = nullptr;
  std::vector<Tree> below{};

  Tree& at(std::string_view path) {
    const auto dot = path.find('.');
    const std::string first(path.substr(0, dot));
    auto found = std::find_if(below.begin(), below.end(), [&](const Tree& tree) { return tree.name == first; });
    if (found == below.end()) found = below.insert(below.end(), Tree{first});
    return dot == path.npos ? *found : found->at(path.substr(dot + 1));
  }
  [[nodiscard]] const Tree* find(std::string_view child) const {
    for (const Tree& tree : below)
      if (tree.name == child) return &tree;
    return nullptr;
  }
};

ordered_json schema_of(const Tree& tree);

ordered_json object(const Tree& tree) {
  ordered_json schema{{"type", "object"}}, properties = ordered_json::object(), required = ordered_json::array();
  for (const Tree& child : tree.below) {
    if (child.name == "0" || child.name == "*") continue;
    properties[child.name] = schema_of(child);
    if (child.key && child.key->required) required.push_back(child.name);
  }
  if (!properties.empty()) schema["properties"] = std::move(properties);
  if (!required.empty()) schema["required"] = std::move(required);
  const Tree* free = tree.find("*");
  schema["additionalProperties"] = free ? schema_of(*free) : ordered_json(false);
  return schema;
}

ordered_json form_of(const Asked& asked, const Tree& tree) {
  switch (asked.kind) {
    case Asked::Kind::flag: return {{"type", "boolean"}};
    case Asked::Kind::integer: return integer(asked);
    case Asked::Kind::measure: return measure(asked);
    case Asked::Kind::choice: return {{"enum", asked.names}};
    case Asked::Kind::mapping: return object(tree);
    case Asked::Kind::text: return {{"type", {"string", "number", "boolean"}}};  // YAML may take a word for either
    case Asked::Kind::list: break;
  }
  ordered_json list{{"type", "array"}};
  if (const Tree* item = tree.find("0")) list["items"] = schema_of(*item);
  return list;
}

ordered_json one_of(std::vector<ordered_json> forms) {
  if (forms.empty()) return ordered_json::object();
  return forms.size() == 1 ? std::move(forms.front()) : ordered_json{{"anyOf", std::move(forms)}};
}

ordered_json with_source(const ordered_json& value) {
  const ordered_json text{{"type", "string"}};
  return {{"type", "object"},
          {"properties",
           {{"value", value},
            {"source", {{"type", "string"}, {"minLength", 1}}},
            {"spread", measure({.kind = Asked::Kind::measure, .range = {0.0, 1.0}})},
            {"note", text}}},
          {"required", {"value", "source"}},
          {"additionalProperties", false}};
}

ordered_json schema_of(const Tree& tree) {
  std::vector<ordered_json> forms;
  const InputKey* key = tree.key;
  if (key != nullptr)
    for (const Asked& asked : key->asked) forms.push_back(form_of(asked, tree));
  const bool keys_below =
      std::any_of(tree.below.begin(), tree.below.end(), [](const Tree& t) { return t.name != "0"; });
  if (keys_below && (key == nullptr || key->form(Asked::Kind::mapping) == nullptr)) forms.push_back(object(tree));
  if (key != nullptr) {
    if (key->zero_is_none) forms.push_back({{"const", 0}});
    for (const std::string& word : key->words) forms.push_back({{"const", word}});
    if (!key->document.empty()) forms.push_back({{"$ref", "#/$defs/" + key->document}});
  }
  ordered_json value = one_of(std::move(forms));
  if (key != nullptr && key->described) {
    ordered_json sourced = with_source(value);
    value = key->bare ? ordered_json{{"anyOf", {std::move(value), std::move(sourced)}}} : std::move(sourced);
  }
  if (key == nullptr || key->meaning.empty()) return value;
  ordered_json schema{{"description", fmt::format("{} ({})", key->meaning, allowed_values(*key))}};
  schema.update(value);
  return schema;
}

ordered_json schema_of(const InputDocument& document) {
  Tree root;
  for (const InputKey& key : document.keys) root.at(key.path).key = &key;
  ordered_json schema{{"title", document.name}, {"description", document.title}};
  schema.update(object(root));
  return schema;
}

/// Made by tools/output_schema.py of what the commands print.
ordered_json output_schemas() {
  return ordered_json::parse(read_text((config::data_folder("data") / "output_schema.json").string()))["$defs"];
}

constexpr std::pair<std::string_view, std::string_view> kOtherKinds[] = {
    {"gpu", "hardware"}, {"chip", "hardware"}, {"device", "hardware"}, {"network", "model"}, {"training", "scenario"}};

}  // namespace

std::vector<std::string> schema_names(std::span<const InputDocument> documents) {
  std::vector<std::string> names;
  for (const InputDocument& document : documents) names.push_back(document.name);
  const ordered_json outputs = output_schemas();
  for (const auto& [name, schema] : outputs.items()) names.push_back(name);
  return names;
}

ordered_json schema_json(std::span<const InputDocument> documents, const std::string& name) {
  const std::vector<std::string> names = schema_names(documents);
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
    // "chip" and "scenario.yaml" as people call them.
    std::string wanted = name.substr(0, name.find('.'));
    for (const auto& [said, meant] : kOtherKinds)
      if (said == wanted) wanted = meant;
    throw UserError(fmt::format("schema: no '{}'; {} (--names lists them)", name, expected_names(wanted, names)));
  }
  ordered_json definitions = ordered_json::object();
  for (const InputDocument& document : documents) definitions[document.name] = schema_of(document);
  definitions.update(output_schemas());
  ordered_json schema{{"$schema", kDraft}, {"title", "Files and outputs of ridgeline"}};
  if (!name.empty()) schema["$ref"] = "#/$defs/" + name;
  schema["$defs"] = std::move(definitions);
  return schema;
}

}  // namespace ridgeline

#include "sim/training_files/tool_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/units/nearest_name.h"
#include "sim/units/user_error.h"

namespace ridgeline::training_files {
namespace {

using config::Entry;
using config::Mapping;
using config::Node;
using config::Value;

constexpr std::array<std::pair<std::string_view, Form>, 5> kForms{{{"yaml", Form::yaml},
                                                                   {"json", Form::json},
                                                                   {"toml", Form::toml},
                                                                   {"python", Form::python},
                                                                   {"arguments", Form::arguments}}};

std::vector<std::string> texts(const Value& value) {
  std::vector<std::string> out;
  if (!value.exists()) return out;
  if (!value.is_list()) return {value.text()};
  for (const Value& item : value.list()) out.push_back(item.node().kind == Node::Kind::null ? "null" : item.text());
  return out;
}

std::vector<std::pair<std::string, std::string>> read_notes(const Value& value) {
  std::vector<std::pair<std::string, std::string>> out;
  if (value.exists())
    for (const Entry& entry : value.node().entries) out.emplace_back(entry.key, entry.value.scalar);
  return out;
}

Targets read_targets(const Value& value) {
  Targets out;
  if (!value.exists() || value.node().kind == Node::Kind::null) return out;
  if (!value.is_mapping()) value.fail("expected targets with their values");
  for (const Entry& entry : value.node().entries) out.emplace_back(entry.key, entry.value);
  return out;
}

Row read_row(const std::string& key, const Value& value) {
  Row row;
  row.key = key;
  if (value.node().kind == Node::Kind::scalar) {
    row.to = value.text();
    return row;
  }
  const Mapping mapping(value,
                        {"to", "as", "text", "values", "sets", "notes", "adds", "value", "default", "includes_file"});
  row.to = mapping["to"].text("");
  row.as = mapping["as"].text("");
  row.text = mapping["text"].text("");
  row.adds = mapping["adds"].text("");
  row.added = mapping["value"].text("");
  row.added_by_default = mapping["default"].boolean(false);
  row.includes_file = mapping["includes_file"].boolean(false);
  row.values = read_targets(mapping["values"]);
  row.notes = read_notes(mapping["notes"]);
  if (mapping.has("sets"))
    for (const Entry& entry : mapping["sets"].node().entries)
      row.sets.emplace_back(entry.key, read_targets(Value(entry.value, entry.key)));
  if (row.to.empty() && row.as.empty() && row.adds.empty() && row.sets.empty() && !row.includes_file)
    value.fail("expected one of: to, as, sets, adds, includes_file");
  return row;
}

Rule read_rule(const Value& value) {
  const Mapping mapping(value, {"if", "sets", "note", "refuse"});
  Rule rule;
  for (const Entry& entry : mapping["if"].node().entries)
    rule.conditions.push_back({entry.key, texts(Value(entry.value, entry.key))});
  rule.sets = read_targets(mapping["sets"]);
  rule.note = mapping["note"].text("");
  rule.refuse = mapping["refuse"].text("");
  return rule;
}

Refusal read_refusal(const std::string& key, const Value& value) {
  if (!value.is_mapping()) return {key, value.text(), {}};
  const Mapping mapping(value, {"fine", "why"});
  return {key, mapping["why"].text(), texts(mapping["fine"])};
}

ToolTable read_table(const std::string& name) {
  const Node tree = config::load_yaml(config::data_folder("data") / "tools" / (name + ".yaml"));
  const Mapping root(Value(tree), {"tool", "source", "form", "recognised_by", "includes", "defaults", "keys",
                                   "no_effect", "refused", "when"});
  ToolTable table;
  table.name = name;
  table.tool = root["tool"].text();
  table.source = root["source"].text("");
  if (root.has("form"))
    for (const Value& form : root["form"].list()) table.forms.push_back(form.choice<Form>(kForms));
  if (root.has("recognised_by"))
    for (const Value& keys : root["recognised_by"].list()) table.recognised_by.push_back(texts(keys));
  table.includes = texts(root["includes"]);
  table.defaults = read_targets(root["defaults"]);
  if (root.has("keys"))
    for (const Entry& entry : root["keys"].node().entries)
      table.rows.push_back(read_row(entry.key, Value(entry.value, entry.key)));
  table.no_effect = texts(root["no_effect"]);
  if (root.has("refused"))
    for (const Entry& entry : root["refused"].node().entries)
      table.refused.push_back(read_refusal(entry.key, Value(entry.value, entry.key)));
  if (root.has("when"))
    for (const Value& rule : root["when"].list()) table.rules.push_back(read_rule(rule));
  return table;
}

bool same(char a, char b) {
  const auto plain = [](char c) {
    return c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  };
  return plain(a) == plain(b);
}

}  // namespace

bool ToolTable::takes(Form form) const { return std::find(forms.begin(), forms.end(), form) != forms.end(); }

bool same_key(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, behind = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') star = p++, behind = t;
    else if (p < pattern.size() && same(pattern[p], text[t])) ++p, ++t;
    else if (star != std::string_view::npos) p = star + 1, t = ++behind;
    else return false;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

const std::vector<ToolTable>& tool_tables() {
  static const std::vector<ToolTable> all = [] {
    std::vector<ToolTable> tables;
    for (const std::string& name : config::yaml_names(config::data_folder("data") / "tools"))
      tables.push_back(read_table(name));
    return tables;
  }();
  return all;
}

const ToolTable& tool_table(std::string_view name) {
  for (const ToolTable& table : tool_tables())
    if (table.name == name) return table;
  throw UserError(fmt::format("data/tools has no table {}", name));
}

std::vector<const ToolTable*> with_included(const ToolTable& table) {
  std::vector<const ToolTable*> out{&table};
  for (std::size_t i = 0; i < out.size(); ++i)
    for (const std::string& name : out[i]->includes)
      if (const ToolTable* more = &tool_table(name); std::find(out.begin(), out.end(), more) == out.end())
        out.push_back(more);
  const ToolTable* common = &tool_table("common");
  if (std::find(out.begin(), out.end(), common) == out.end()) out.push_back(common);
  return out;
}

}  // namespace ridgeline::training_files

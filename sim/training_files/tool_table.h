// Meanings of the keys of a tool's training configuration in keys of a scenario: data/tools/NAME.yaml, one file a tool.
//
// A target is a key of the scenario (it has a dot, or is one of its names) or a fact that assemble.h works with.
// docs/tools.md lists the tables; tested by tests/training_files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config/node.h"

namespace ridgeline::training_files {

using Targets = std::vector<std::pair<std::string, config::Node>>;  ///< what is set, and to what

struct Row {
  std::string key;   ///< of the tool, `*` for any letters
  std::string as;    ///< another key of the table that means the same
  std::string to;    ///< target that takes the value: as written, as `values` has it, or as `text` builds it
  std::string text;  ///< "{} MiB": {} is the value, {other.key} another key's, {key?words} words where it is true
  std::vector<std::pair<std::string, config::Node>>
      values;                                              ///< the tool's word: ours; null says nothing, "=" as written
  std::vector<std::pair<std::string, Targets>> sets;       ///< the tool's word: what it sets; null takes a target away
  std::vector<std::pair<std::string, std::string>> notes;  ///< the tool's word: a sentence
  std::string adds, added;        ///< target of a list that `added` joins where the key is true
  bool added_by_default = false;  ///< or where it is not there
  bool includes_file = false;     ///< the value is another configuration's path
};

struct Refusal {
  std::string key, why;
  std::vector<std::string> fine;  ///< values that are not refused; empty: those that say "off"
};

/// Sets targets, refuses or says a sentence where every condition holds, behind all keys.
struct Rule {
  struct Condition {
    std::string name;                 ///< of a target, or "file." and a key of the tool
    std::vector<std::string> values;  ///< one of them; "none" where it is not said, "any" where it is
  };
  std::vector<Condition> conditions;
  Targets sets;
  std::string note, refuse;
};

enum class Form : unsigned char { yaml, json, toml, python, arguments };

struct ToolTable {
  std::string name, tool, source;
  std::vector<Form> forms;
  std::vector<std::vector<std::string>> recognised_by;
  std::vector<std::string> includes;
  Targets defaults;
  std::vector<Row> rows;
  std::vector<std::string> no_effect;
  std::vector<Refusal> refused;
  std::vector<Rule> rules;

  [[nodiscard]] bool takes(Form form) const;
};

/// True where `text` is `pattern`, in which `*` stands for any letters; small and capital letters are alike, and so are
/// dashes and underscores.
bool matches(std::string_view pattern, std::string_view text);
bool same_key(std::string_view a, std::string_view b);

/// All shipped tables, read once. Throws ConfigError for a mistake in one.
const std::vector<ToolTable>& tool_tables();
/// Throws UserError where there is none.
const ToolTable& tool_table(std::string_view name);
/// The table itself, those it includes, theirs, and what holds for every tool.
std::vector<const ToolTable*> with_included(const ToolTable& table);

}  // namespace ridgeline::training_files

// docs/tools.md: what the keys of other tools' training configurations mean.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/report/schema/schema_json.h"
#include "sim/training_files/tool_table.h"

namespace ridgeline {
namespace {

using training_files::Row;
using training_files::Rule;
using training_files::Targets;
using training_files::ToolTable;

std::string value_text(const config::Node& value) {
  if (value.kind == config::Node::Kind::null) return "not said";
  if (value.kind != config::Node::Kind::list) return value.scalar == "=" ? "as written" : value.scalar;
  std::vector<std::string> items;
  for (const config::Node& item : value.items) items.push_back(item.scalar);
  return fmt::format("{}", fmt::join(items, ", "));
}

std::string targets_text(const Targets& targets) {
  std::vector<std::string> parts;
  for (const auto& [target, value] : targets) parts.push_back(fmt::format("{} = {}", target, value_text(value)));
  return parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string meaning(const Row& row) {
  if (!row.as.empty()) return fmt::format("as {}", row.as);
  if (row.includes_file) return "another configuration, which is read too";
  if (!row.adds.empty()) return fmt::format("adds {} to {}", row.added, row.adds);
  std::vector<std::string> parts;
  for (const auto& [word, targets] : row.sets) parts.push_back(fmt::format("{}: {}", word, targets_text(targets)));
  for (const auto& [word, value] : row.values) parts.push_back(fmt::format("{}: {}", word, value_text(value)));
  const std::string list = fmt::format("{}", fmt::join(parts, "; "));
  if (row.to.empty()) return list;
  if (!row.text.empty()) return fmt::format("{} = {}", row.to, row.text);
  return list.empty() ? row.to : fmt::format("{} ({})", row.to, list);
}

std::string cell(std::string text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : c == '*' ? std::string("\\*") : std::string(1, c);
  return out;
}

std::string table_text(const ToolTable& table) {
  std::string out = fmt::format("\n## {}\n\n", table.tool);
  if (!table.source.empty()) out += fmt::format("Read from {}.\n", table.source);
  if (!table.includes.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : table.includes)
      if (name != "common") names.push_back(training_files::tool_table(name).tool);
    if (!names.empty()) out += fmt::format("Keys of {} are read too.\n", fmt::join(names, ", "));
  }
  if (!table.defaults.empty())
    out += fmt::format("Where the file says nothing: {}.\n", cell(targets_text(table.defaults)));
  if (!table.rows.empty()) {
    out += "\n| key | means |\n|---|---|\n";
    for (const Row& row : table.rows) out += fmt::format("| {} | {} |\n", cell(row.key), cell(meaning(row)));
  }
  if (!table.refused.empty()) {
    out += "\n| refused | why |\n|---|---|\n";
    for (const auto& refusal : table.refused) out += fmt::format("| {} | {} |\n", cell(refusal.key), cell(refusal.why));
  }
  for (const Rule& rule : table.rules) {
    if (rule.refuse.empty() && rule.note.empty()) continue;
    std::vector<std::string> conditions;
    for (const Rule::Condition& one : rule.conditions)
      conditions.push_back(fmt::format("{} {}", one.name, fmt::join(one.values, " or ")));
    out += fmt::format("\n- with {}: {}", cell(fmt::format("{}", fmt::join(conditions, ", "))),
                       cell(rule.refuse.empty() ? rule.note : "refused: " + rule.refuse));
  }
  if (!table.no_effect.empty())
    out += fmt::format("\n\nWithout effect on time and memory: {}\n",
                       cell(fmt::format("{}", fmt::join(table.no_effect, ", "))));
  return out;
}

}  // namespace

std::string tools_markdown() {
  std::string out = R"(# Training configurations of other tools

Written by `ridgeline schema --tools` from data/tools, one file a tool; a test compares the two.

`ridgeline predict --from train.yaml --hardware h100` reads the file of another tool as it is. `from: train.yaml` in a scenario does the same;
keys of the scenario and options of the command line count more than the file. `--print-scenario` prints the scenario that results, with the
place of each value. Every key of a file is one of four things: it has a meaning below, it changes neither time nor memory, it is refused with a reason, or the
answer lists it as not known.

A name without a dot is a fact that several keys follow from: `global_batch` is divided by micro-batches and ranks, `sharding` is a strategy, `gpus` makes a
cluster of the GPU that was asked for.
)";
  for (const ToolTable& table : training_files::tool_tables()) out += table_text(table);
  return out;
}

}  // namespace ridgeline

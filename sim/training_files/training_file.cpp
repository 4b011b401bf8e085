#include "sim/training_files/training_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/config/config_error.h"
#include "sim/config/make_node.h"
#include "sim/training_files/apply_rows.h"
#include "sim/training_files/assemble.h"
#include "sim/training_files/counts.h"
#include "sim/training_files/facts.h"
#include "sim/training_files/settings.h"
#include "sim/training_files/tool_table.h"

namespace ridgeline::training_files {
namespace {

using config::ConfigError;

bool includes(const ToolTable& table, const ToolTable& other) {
  const std::vector<const ToolTable*> all = with_included(table);
  return &table != &other && std::find(all.begin(), all.end(), &other) != all.end();
}

/// The table whose keys the file has; of several the one that includes the others, then the one that asks for the most.
const ToolTable* recognise(const Settings& settings) {
  const ToolTable* best = nullptr;
  std::size_t most = 0;
  for (const ToolTable& table : tool_tables()) {
    if (!table.takes(settings.form)) continue;
    for (const std::vector<std::string>& keys : table.recognised_by) {
      const bool all = std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
        return std::any_of(settings.all.begin(), settings.all.end(),
                           [&](const Setting& one) { return matches(key, one.key) || matches(key + ".*", one.key); });
      });
      if (!all || (best != nullptr && includes(*best, table))) continue;
      if (best == nullptr || includes(table, *best) || keys.size() > most) best = &table, most = keys.size();
    }
  }
  return best;
}

[[noreturn]] void refuse_unknown(const std::string& file) {
  const config::Origin origin{std::make_shared<const std::string>(file), 0, 0};
  std::string tools;
  for (const ToolTable& table : tool_tables())
    if (!table.recognised_by.empty()) tools += fmt::format("{}{}", tools.empty() ? "" : ", ", table.tool);
  throw ConfigError(origin, "", fmt::format("is no training configuration of a tool that is known ({})", tools));
}

class Reader {
 public:
  Reader(const Asked& asked, TrainingFile& result) : asked_(asked), result_(result) {}

  void read(const std::string& file) { take(read_settings(file), file, 0); }

  Facts facts;

 private:
  /// Sets facts; returns the settings with those of the configurations that it includes.
  Settings take(Settings settings, const std::string& file, int depth) {
    constexpr int kDeepest = 3;
    const ToolTable* table = recognise(settings);
    if (table == nullptr) refuse_unknown(file);
    result_.tool += (result_.tool.empty() ? "" : " and ") + table->tool;
    const std::vector<const ToolTable*> tables = with_included(*table);
    for (auto each = tables.rbegin(); each != tables.rend(); ++each)
      for (const auto& [target, value] : (*each)->defaults)
        if (depth == 0 || target == "framework" || !facts.has(target)) {
          config::Node taken = value;
          taken.origin = {std::make_shared<const std::string>(fmt::format("default of {}", (*each)->tool)), 0, 0};
          facts.set(target, {std::move(taken), ""});
        }
    Included more = apply_rows(settings, tables, facts, result_);
    const auto include = [&](Settings other, const std::string& from) {
      const Settings all = take(std::move(other), from, depth + 1);
      settings.all.insert(settings.all.end(), all.all.begin(), all.all.end());
    };
    if (!more.held.all.empty()) include(std::move(more.held), file);
    for (const auto& [named, origin] : more.files) {
      const std::filesystem::path beside = std::filesystem::path(file).parent_path() / named;
      std::error_code ignored;
      if (depth >= kDeepest) throw ConfigError(origin, "", "configurations name one another without an end");
      if (!std::filesystem::is_regular_file(beside, ignored))
        throw ConfigError(origin, "", fmt::format("{} is not there: put it beside this file", beside.string()));
      include(read_settings(beside.string()), beside.string());
    }
    const std::int64_t gpus = gpus_of(facts, asked_);
    if (!facts.has("gpus")) facts.set("gpus", {config::scalar_node(std::to_string(gpus), {}), ""});
    apply_rules(tables, settings, facts, result_);
    return settings;
  }

  const Asked& asked_;
  TrainingFile& result_;
};

}  // namespace

std::string tool_of_file(const std::string& file) {
  const ToolTable* table = recognise(read_settings(file));
  return table == nullptr ? "" : table->tool;
}

TrainingFile read_training_file(const std::string& file, const Asked& asked) {
  TrainingFile result;
  result.file = file;
  Reader reader(asked, result);
  reader.read(file);
  assemble(reader.facts, asked, result);
  return result;
}

}  // namespace ridgeline::training_files

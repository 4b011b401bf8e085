#include "sim/training_files/training_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "sim/config/config_error.h"
#include "sim/config/make_node.h"
#include "sim/training_files/apply_rows.h"
#include "sim/training_files/assemble.h"
#include "sim/training_files/counts.h"
#include "sim/training_files/facts.h"
#include "sim/training_files/settings.h"
#include "sim/training_files/tool_table.h"
#include "sim/units/nearest_name.h"

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

/// A file that another one names: beside it, or below one of the folders that it lies in, as tools are started in the
/// folder of their repository.
std::filesystem::path found_near(const std::string& file, const std::string& named) {
  const std::filesystem::path first = std::filesystem::path(file).parent_path() / named;
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::absolute(file, ignored).parent_path();
  for (int up = 0; up < 4 && !std::filesystem::is_regular_file(first, ignored); ++up, folder = folder.parent_path())
    if (std::filesystem::is_regular_file(folder / named, ignored)) return folder / named;
  return first;
}

/// DeepSpeed's configuration that a name says: "ds_z3_offload_config.json", "zero2.json".
std::optional<Settings> meant_by_name(const std::string& named, const config::Origin& origin) {
  const std::string name = in_small_letters(std::filesystem::path(named).filename().string());
  std::string stage;
  for (const std::string_view word :
       {"zero_stage", "zero-stage", "stage_", "stage", "zero_", "zero-", "zero", "_z", "z", "_s"})
    for (std::size_t at = name.find(word); stage.empty() && at != std::string::npos; at = name.find(word, at + 1)) {
      const std::size_t digit = at + word.size();
      if (digit < name.size() && name[digit] >= '0' && name[digit] <= '3' && (word != "z" || at == 0))
        stage = name.substr(digit, 1);
    }
  if (stage.empty()) return {};
  Settings meant;
  meant.form = Form::json;
  const auto add = [&](const char* key, const std::string& value) {
    meant.all.push_back({key, config::scalar_node(value, origin)});
  };
  add("zero_optimization.stage", stage);
  add("train_micro_batch_size_per_gpu", "auto");
  add("bf16.enabled", "auto");
  if (name.find("offload") != std::string::npos) {
    add("zero_optimization.offload_optimizer.device", "cpu");
    if (stage == "3") add("zero_optimization.offload_param.device", "cpu");
  }
  return meant;
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
      const std::filesystem::path beside = found_near(file, named);
      std::error_code ignored;
      if (depth >= kDeepest) throw ConfigError(origin, "", "configurations name one another without an end");
      if (std::optional<Settings> meant;
          !std::filesystem::is_regular_file(beside, ignored) && (meant = meant_by_name(named, origin))) {
        result_.notes.push_back(
            fmt::format("{} is not there: taken as ZeRO stage {} by its name; beside this file it is read", named,
                        meant->find("zero_optimization.stage")->scalar));
        include(std::move(*meant), beside.string());
        continue;
      }
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

#include "sim/training_files/apply_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/config/config_error.h"
#include "sim/config/make_node.h"
#include "sim/units/nearest_name.h"

namespace ridgeline::training_files {
namespace {

using config::ConfigError;
using config::Node;

/// An exact word, else the first pattern that it matches.
template <typename Pairs>
const typename Pairs::value_type* chosen(const Pairs& pairs, const std::string& word) {
  const typename Pairs::value_type *pattern = nullptr, *any = nullptr;
  for (const auto& pair : pairs) {
    if (in_small_letters(pair.first) == word || (pair.first == "null" && word == "null")) return &pair;
    if (pair.first == "*") any = &pair;
    else if (pattern == nullptr && pair.first.find('*') != std::string::npos && matches(pair.first, word))
      pattern = &pair;
  }
  return pattern != nullptr ? pattern : any;
}

class RowReader {
 public:
  RowReader(const Settings& settings, const std::vector<const ToolTable*>& tables, Facts& facts, TrainingFile& result)
      : settings_(settings), tables_(tables), facts_(facts), result_(result) {}

  Included run() {
    for (const Setting& setting : settings_.all) take(setting);
    for (const ToolTable* table : tables_)
      for (const Row& row : table->rows)
        if (!row.adds.empty()) add(row);
    return std::move(included_);
  }

 private:
  void take(const Setting& setting) {
    if (settings_.form == Form::arguments && setting.value.kind == Node::Kind::scalar && setting.value.scalar.empty()) {
      result_.notes.push_back(
          fmt::format("{} is a variable that the script does not set: taken as not said", setting.key));
      return;
    }
    for (const ToolTable* table : tables_) {
      if (const Row* row = row_in(*table, setting.key)) {
        for (int step = 0; !row->as.empty() && step < 4; ++step)
          if (const Row* other = row_of(row->as); other != nullptr) row = other;
        return use(*row, setting);
      }
      for (const Refusal& refusal : table->refused)
        if (matches(refusal.key, setting.key)) return mind(refusal, setting);
      for (const std::string& key : table->no_effect)
        if (matches(key, setting.key)) return result_.without_effect.push_back(setting.key);
    }
    if (!hold(setting) && !is_off(setting.value)) result_.unknown.push_back(setting.key);
  }
  /// `deepspeed: {...}`: a configuration in the place of its file's path.
  bool hold(const Setting& setting) {
    for (const ToolTable* table : tables_)
      for (const Row& row : table->rows)
        if (row.includes_file && setting.key.size() > row.key.size() + 1 && setting.key[row.key.size()] == '.' &&
            same_key(std::string_view(setting.key).substr(0, row.key.size()), row.key)) {
          included_.held.form = settings_.form;
          included_.held.all.push_back({setting.key.substr(row.key.size() + 1), setting.value});
          return true;
        }
    return false;
  }
  static void mind(const Refusal& refusal, const Setting& setting) {
    const std::string word = word_of(setting.value);
    const bool fine = refusal.fine.empty()
                          ? is_off(setting.value)
                          : setting.value.kind == Node::Kind::null ||
                                std::any_of(refusal.fine.begin(), refusal.fine.end(),
                                            [&](const std::string& one) { return matches(one, word); });
    if (!fine) throw ConfigError(setting.value.origin, setting.key, refusal.why);
  }
  static const Row* row_in(const ToolTable& table, std::string_view key) {
    const Row* found = nullptr;
    for (const Row& row : table.rows) {
      if (same_key(row.key, key)) return &row;
      if (found == nullptr && row.key.find('*') != std::string::npos && matches(row.key, key)) found = &row;
    }
    return found;
  }
  [[nodiscard]] const Row* row_of(std::string_view key) const {
    for (const ToolTable* table : tables_)
      if (const Row* row = row_in(*table, key)) return row;
    return nullptr;
  }

  template <typename Pairs>
  [[noreturn]] static void refuse_word(const Pairs& pairs, const Setting& setting) {
    std::string known;
    for (const auto& pair : pairs) known += (known.empty() ? "" : ", ") + (pair.first.empty() ? "''" : pair.first);
    throw ConfigError(setting.value.origin, setting.key,
                      fmt::format("{} is not modelled; expected one of {}", setting.value.describe(), known));
  }

  void use(const Row& row, const Setting& setting) {
    if (!row.adds.empty()) return;
    const std::string word = word_of(setting.value);
    if (row.includes_file) {
      if (!is_off(setting.value)) included_.files.emplace_back(setting.value.scalar, setting.value.origin);
      return;
    }
    if (const auto* note = chosen(row.notes, word)) result_.notes.push_back(note->second);
    UsedKey used{setting.key, word, setting.value.origin, {}};
    const bool silent = setting.value.kind == Node::Kind::null || word == "auto";
    if (!row.sets.empty()) {
      const auto* found = chosen(row.sets, word);
      if (found == nullptr && (silent || is_off(setting.value))) return;
      if (found == nullptr) refuse_word(row.sets, setting);
      for (const auto& [target, value] : found->second) set(target, value, setting, used);
    } else if (!row.values.empty()) {
      const auto* found = chosen(row.values, word);
      if (found == nullptr && silent) return;
      if (found == nullptr) refuse_word(row.values, setting);
      if (found->second.kind != Node::Kind::null) set(row.to, found->second, setting, used);
    } else if (!row.text.empty()) {
      if (!silent) set(row.to, config::scalar_node(built(row.text, setting), setting.value.origin), setting, used);
    } else if (!silent) {
      set(row.to, setting.value, setting, used);
    }
    if (!used.targets.empty()) result_.used.push_back(std::move(used));
  }
  void set(const std::string& target, Node value, const Setting& setting, UsedKey& used) {
    used.targets.push_back(target);
    if (value.kind == Node::Kind::null) return facts_.erase(target);
    if (value.kind == Node::Kind::scalar && value.scalar == "=") value = setting.value;
    place(value, setting.value.origin);
    if (value.kind == Node::Kind::scalar && (value.scalar == "True" || value.scalar == "False"))
      value.scalar = in_small_letters(value.scalar);
    facts_.set(target, {std::move(value), setting.key});
  }
  static void place(Node& node, const config::Origin& origin) {
    node.origin = origin;
    for (Node& item : node.items) place(item, origin);
    for (config::Entry& entry : node.entries) place(entry.value, origin);
  }
  static std::string words(const Node& value) {
    if (value.kind != Node::Kind::list) return value.scalar;
    std::string out;
    for (const Node& item : value.items) out += (out.empty() ? "" : " ") + item.scalar;
    return out;
  }
  [[nodiscard]] std::string built(std::string_view text, const Setting& setting) const {
    std::string out;
    while (!text.empty()) {
      const std::size_t open = text.find('{'), close = text.find('}', std::min(open, text.size()));
      out += text.substr(0, open);
      if (open == std::string_view::npos || close == std::string_view::npos) break;
      const std::string_view inside = text.substr(open + 1, close - open - 1);
      const std::size_t asks = inside.find('?');
      const Node* other = settings_.find(inside.substr(0, asks));
      if (inside.empty()) out += words(setting.value);
      else if (asks == std::string_view::npos) out += other != nullptr ? words(*other) : "";
      else if (other != nullptr && !is_off(*other)) out += inside.substr(asks + 1);
      text.remove_prefix(close + 1);
    }
    const std::size_t first = out.find_first_not_of(' '), last = out.find_last_not_of(' ');
    return first == std::string::npos ? "" : out.substr(first, last - first + 1);
  }
  /// A word of a list, where a key of its own says so.
  void add(const Row& row) {
    const Node* said = settings_.find(row.key);
    if (said != nullptr ? is_off(*said) : !row.added_by_default) return;
    const Fact* known = facts_.find(row.adds);
    const config::Origin origin = said != nullptr ? said->origin : config::Origin{};
    const std::string before = known != nullptr ? known->value.scalar + " " : "";
    facts_.set(row.adds, {config::scalar_node(before + row.added, origin), row.key});
    result_.used.push_back({row.key, "true", origin, {row.adds}});
  }

  const Settings& settings_;
  const std::vector<const ToolTable*>& tables_;
  Facts& facts_;
  TrainingFile& result_;
  Included included_;
};

bool holds(const Rule::Condition& condition, const Settings& settings, const Facts& facts) {
  constexpr std::string_view kFile = "file.";
  const Node* value = nullptr;
  if (condition.name.starts_with(kFile)) value = settings.find(std::string_view(condition.name).substr(kFile.size()));
  else if (const Fact* fact = facts.find(condition.name)) value = &fact->value;
  const std::string word = value == nullptr ? "none" : word_of(*value);
  return std::any_of(condition.values.begin(), condition.values.end(), [&](const std::string& one) {
    if (one == "any") return value != nullptr;
    return one == "none" ? word == "none" || word == "null" : value != nullptr && matches(one, word);
  });
}

}  // namespace

Included apply_rows(const Settings& settings, const std::vector<const ToolTable*>& tables, Facts& facts,
                    TrainingFile& result) {
  return RowReader(settings, tables, facts, result).run();
}

void apply_rules(const std::vector<const ToolTable*>& tables, const Settings& settings, Facts& facts,
                 TrainingFile& result) {
  for (auto table = tables.rbegin(); table != tables.rend(); ++table)
    for (const Rule& rule : (*table)->rules) {
      const bool all = std::all_of(rule.conditions.begin(), rule.conditions.end(),
                                   [&](const Rule::Condition& one) { return holds(one, settings, facts); });
      if (!all) continue;
      if (!rule.refuse.empty())
        throw ConfigError({std::make_shared<const std::string>(result.file), 0, 0}, "", rule.refuse);
      if (!rule.note.empty()) result.notes.push_back(rule.note);
      for (const auto& [target, value] : rule.sets)
        if (value.kind == Node::Kind::null) {
          facts.erase(target);
        } else {
          Node taken = value;
          taken.origin = {std::make_shared<const std::string>(fmt::format("as {} has it", (*table)->tool)), 0, 0};
          facts.set(target, {std::move(taken), (*table)->tool});
        }
    }
}

}  // namespace ridgeline::training_files

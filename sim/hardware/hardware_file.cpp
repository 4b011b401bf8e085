#include "sim/hardware/hardware_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/config/shipped_names.h"
#include "sim/units/meant_name.h"
#include "sim/units/nearest_name.h"

namespace ridgeline {

bool names_a_path(std::string_view name_or_path) {
  return name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".yaml") ||
         name_or_path.ends_with(".yml");
}

const SpellingRules& hardware_spelling() {
  static constexpr std::array<std::string_view, 9> kVendors{"nvidia", "geforce",     "tesla",   "quadro", "gpu",
                                                            "card",   "corporation", "pytorch", "torch"};
  static const SpellingRules rules{.vendors = kVendors, .endings = {}, .any_order = true};
  return rules;
}

namespace {

bool of_another_vendor(std::string_view given) {
  static constexpr std::array<std::string_view, 18> kWords{
      "amd",   "radeon", "instinct", "mi",       "rx",         "intel",  "gaudi",    "arc",  "xpu",
      "apple", "mps",    "tpu",      "trainium", "inferentia", "ascend", "cerebras", "groq", "huawei"};
  const std::vector<std::string> parts = name_parts(given);
  return std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
    return std::find(kWords.begin(), kWords.end(), part) != kWords.end();
  });
}

[[noreturn]] void fail_unknown(std::string_view what, std::string_view given, const std::vector<std::string>& meant,
                               std::vector<std::string> names) {
  // The nearest first: a list that is cut keeps them.
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(in_small_letters(given), a) < edit_distance(in_small_letters(given), b);
  });
  std::string message = fmt::format("unknown name '{}'", given);
  if (!meant.empty()) message += fmt::format("; did you mean {}?", fmt::join(meant, ", "));
  else if (what == "hardware" && given.find(',') != given.npos)
    message += ": one GPU is named here; ridgeline compare takes several, with blanks between them";
  else if (what == "hardware" && of_another_vendor(given))
    message +=
        ": GPUs of NVIDIA alone are modelled, and no GPU of this name is described; ridgeline hardware lists those "
        "described";
  else if (what == "hardware")
    message +=
        ": no GPU of this name is described. Write eleven numbers of its datasheet into a file "
        "(docs/describe-a-chip.md) and give the path of the file; ridgeline hardware lists those described";
  else message += "; there are " + some_names(names);
  throw config::ConfigError({}, what, message);
}

}  // namespace

std::string described_file(std::string_view what, std::string_view folder, std::string_view name_or_path) {
  if (names_a_path(name_or_path)) return std::string(name_or_path);
  const std::filesystem::path directory = config::data_folder("hw") / folder;
  std::string file = (directory / fmt::format("{}.yaml", name_or_path)).string();
  // Sweeps name one by the thousand: the folder is read where there is none.
  std::error_code ignored;
  if (!name_or_path.empty() && std::filesystem::exists(file, ignored)) return file;
  const std::vector<config::ShippedName> shipped = config::shipped_names(directory);
  const std::string name = config::name_spelled(name_or_path, shipped, hardware_spelling());
  if (!name.empty()) return (directory / (name + ".yaml")).string();
  const std::vector<std::string> names = config::yaml_names(directory);
  const std::vector<std::string> meant = config::names_meant(name_or_path, shipped, hardware_spelling());
  fail_unknown(what, name_or_path, meant, names);
}

void lay_over(config::Node& base, const config::Node& changes) {
  const bool is_field = changes.find("value") != nullptr;
  if (is_field || base.kind != config::Node::Kind::mapping || changes.kind != config::Node::Kind::mapping) {
    base = changes;
    return;
  }
  for (const config::Entry& entry : changes.entries) {
    if (config::Node* found = base.find(entry.key)) lay_over(*found, entry.value);
    else base.entries.push_back(entry);
  }
}

}  // namespace ridgeline

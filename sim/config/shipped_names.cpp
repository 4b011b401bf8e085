#include "sim/config/shipped_names.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "sim/config/config_error.h"
#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"

namespace ridgeline::config {
namespace {

/// The list alone: a misspelt name is looked for in all files of a folder, which are not read whole for it.
std::vector<std::string> aliases_of(const std::filesystem::path& file) {
  constexpr std::string_view kKey = "aliases:";
  std::ifstream in(file);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  std::size_t begin = text.starts_with(kKey) ? 0 : text.find("\naliases:");
  if (begin == std::string::npos) return {};
  begin = text.find('[', begin);
  const std::size_t end = begin == std::string::npos ? begin : text.find(']', begin);
  if (end == std::string::npos) return {};
  std::vector<std::string> aliases;
  try {
    const Node list = parse_yaml(text.substr(begin, end + 1 - begin), file.string());
    for (const Value& alias : Value(list).list()) aliases.push_back(alias.text());
  } catch (const ConfigError&) {
    return {};  // whoever reads the file itself is told
  }
  return aliases;
}

template <typename Fits>
std::vector<std::string> names_where(const std::vector<ShippedName>& names, const Fits& fits) {
  std::vector<std::string> found;
  for (const ShippedName& one : names)
    if (std::any_of(one.spellings.begin(), one.spellings.end(), fits)) found.push_back(one.name);
  return found;
}

}  // namespace

std::vector<ShippedName> shipped_names(const std::filesystem::path& folder) {
  std::vector<ShippedName> names;
  for (std::string& name : yaml_names(folder)) {
    std::vector<std::string> spellings = aliases_of(folder / (name + ".yaml"));
    spellings.insert(spellings.begin(), name);
    names.push_back({std::move(name), std::move(spellings)});
  }
  return names;
}

std::string name_spelled(std::string_view given, const std::vector<ShippedName>& names, const SpellingRules& rules) {
  for (std::string text(given); !text.empty(); text = without_ending(text, rules)) {
    const std::string key = spelling_key(text, rules);
    if (key.empty()) break;
    const auto found =
        names_where(names, [&](const std::string& spelling) { return spelling_key(spelling, rules) == key; });
    if (!found.empty()) return found.front();
  }
  return "";
}

std::vector<std::string> names_meant(std::string_view given, const std::vector<ShippedName>& names,
                                     const SpellingRules& rules) {
  std::vector<std::string> meant;
  for (std::string text(given); !text.empty() && meant.empty(); text = without_ending(text, rules)) {
    meant = names_where(names, [&](const std::string& spelling) { return shortens(text, spelling, rules); });
    if (meant.empty())
      meant = names_where(names, [&](const std::string& spelling) { return misspells(text, spelling, rules); });
  }
  return meant;
}

}  // namespace ridgeline::config

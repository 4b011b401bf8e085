#include "sim/hardware/hardware_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "sim/config/data_folder.h"
#include "sim/config/meant_name.h"
#include "sim/config/parse_yaml.h"
#include "sim/units/nearest_name.h"

namespace ridgeline {

bool names_a_path(std::string_view name_or_path) {
  return name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".yaml") ||
         name_or_path.ends_with(".yml");
}

std::string described_file(std::string_view what, std::string_view folder, std::string_view name_or_path) {
  if (names_a_path(name_or_path)) return std::string(name_or_path);
  const std::filesystem::path directory = config::data_folder("hw") / folder;
  std::string file = (directory / fmt::format("{}.yaml", name_or_path)).string();
  // Sweeps name one by the thousand: the folder is read where there is none.
  std::error_code ignored;
  if (name_or_path.empty() || !std::filesystem::exists(file, ignored)) {
    const std::vector<std::string> names = config::yaml_names(directory);
    std::vector<std::string> meant;
    for (const std::string& name : names)
      if (abbreviates(name_or_path, name)) meant.push_back(name);
    if (meant.empty()) meant.push_back(config::meant_name(name_or_path, names));
    throw config::ConfigError(
        {}, what,
        meant.front().empty()
            ? fmt::format("unknown name '{}'; there are {}", name_or_path, fmt::join(names, ", "))
            : fmt::format("unknown name '{}'; did you mean {}?", name_or_path, fmt::join(meant, ", ")));
  }
  return file;
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

// Names of shipped descriptions as people spell them: NAME.yaml of a folder, and the `aliases` that its file lists.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units/spelling.h"

namespace ridgeline::config {

struct ShippedName {
  std::string name;
  std::vector<std::string> spellings;  ///< the name itself, then the aliases of its file
};

/// The descriptions of `folder`, sorted. `aliases: [...]` begins a line of its file; a file without one, or one that
/// cannot be read, has its name alone.
std::vector<ShippedName> shipped_names(const std::filesystem::path& folder);

/// The name of which `given` is a spelling; empty when there is none.
std::string name_spelled(std::string_view given, const std::vector<ShippedName>& names, const SpellingRules& rules);

/// Names that `given` shortens or misspells, sorted: never those of another thing.
std::vector<std::string> names_meant(std::string_view given, const std::vector<ShippedName>& names,
                                     const SpellingRules& rules);

}  // namespace ridgeline::config

// Changing one value of a tree from the command line: `--set hardware.dram.bandwidth=4.0 TB/s`.
#pragma once

#include <string>
#include <string_view>

#include "sim/config/node.h"

namespace ridgeline::config {

struct Override {
  std::string key;     ///< dotted path inside the tree it is applied to: "dram.bandwidth"
  std::string value;   ///< YAML: a scalar, [a, list] or {a: mapping}
  std::string origin;  ///< how messages name it; empty gives "--set KEY=VALUE"
};

/// "KEY=VALUE" as typed after --set. Throws ConfigError without '=' or with an empty key or value.
Override parse_override(std::string_view argument);

/// The value alone, as apply_override puts it into a tree. Throws ConfigError when it is not YAML.
Node value_of(const Override& change);

/// Replaces the value at the path, or inserts it (with the mappings on the way). A number steps into a list. The new
/// nodes carry the override as their origin, so that whoever reads them later names the argument, not the file.
/// Throws ConfigError when the path leads through a scalar or past a list's end, or when the value is not YAML.
void apply_override(Node& root, const Override& change);

}  // namespace ridgeline::config

// A Node tree as YAML text that parse_yaml reads back, each value with the place that it came from.
#pragma once

#include <string>

#include "sim/config/node.h"

namespace ridgeline::config {

/// Ends with a newline. A value has its place behind it: `# file:line`, or the argument that gave it.
std::string write_yaml(const Node& tree);

}  // namespace ridgeline::config

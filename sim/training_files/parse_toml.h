// TOML text to a Node tree: tables, arrays of tables, dotted keys, inline tables, strings, numbers, dates as text.
//
// Strict as sim/config/parse_yaml.h: keys are distinct, nesting and size have a limit, and each mistake is a
// ConfigError with file:line:column. Source: TOML 1.0 (toml.io).
#pragma once

#include <string_view>

#include "sim/config/node.h"

namespace ridgeline::training_files {

/// `name` stands for the file in messages.
config::Node parse_toml(std::string_view text, std::string_view name);

}  // namespace ridgeline::training_files

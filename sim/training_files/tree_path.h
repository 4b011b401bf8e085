// Values of a tree by dotted path.
#pragma once

#include <string_view>

#include "sim/config/node.h"

namespace ridgeline::training_files {

/// Puts `value` at a dotted path, with the mappings on the way; a scalar on the way becomes one.
void set_path(config::Node& root, std::string_view path, config::Node value);
/// Null where nothing is there.
const config::Node* find_path(const config::Node& root, std::string_view path);

}  // namespace ridgeline::training_files

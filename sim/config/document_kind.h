// Documents told apart by their keys, for a file that was given where another kind is expected.
#pragma once

#include <string_view>

#include "sim/config/node.h"

namespace ridgeline::config {

/// "scenario", "sweep", "hardware", "cluster" or "model"; empty where the keys do not tell.
std::string_view document_kind(const Node& tree);

/// Throws a ConfigError that says how a document of the other kind is used.
void refuse_other_document(const Node& tree, std::string_view expected);

}  // namespace ridgeline::config

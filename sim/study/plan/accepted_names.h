// What the reader of scenarios takes, asked of itself: so that a strategy or schedule that it learns is searched.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/override.h"
#include "sim/scenario/descriptions.h"

namespace ridgeline {

/// Names of the choice at `key` of the scenario `tree`, changed by `changes`; empty where the reader does not get
/// there.
std::vector<std::string> accepted_names(const config::Node& tree, std::vector<config::Override> changes,
                                        std::string_view key, Descriptions& descriptions);

}  // namespace ridgeline

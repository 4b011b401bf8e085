// Keys of a config.json that change neither time nor memory.
#pragma once

#include <string_view>

#include "sim/config/node.h"

namespace ridgeline {

/// Names, token ids, rates of initialisation and generation, rotary bases.
bool config_key_changes_nothing(std::string_view key);
/// Keys that Transformers before version 5 wrote into every part of a configuration: how text is generated.
bool config_key_is_of_generation(std::string_view key);
/// By its name and value: layers, heads, experts and sizes that are more than none or one.
bool config_key_shapes_a_network(std::string_view key, const config::Node& value);

}  // namespace ridgeline

// A part of a multimodal configuration as a network of its own: `part: text` of a file with text_config.
#pragma once

#include <string>

#include "sim/config/node.h"

namespace ridgeline {

/// `part`: text, vision or both (which changes nothing, as text does for a network that reads text alone). Throws
/// config::ConfigError for another word and for a part that the configuration does not have.
config::Node part_of_config(config::Node config, const std::string& part);

}  // namespace ridgeline

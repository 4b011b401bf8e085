// `from: FILE` of a scenario: the training configuration of another tool, whose keys lie below the scenario's own.
#pragma once

#include <string>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/override.h"

namespace ridgeline {

struct LaidUnder {
  std::vector<std::string> notes;               ///< what is to be known of the file, a sentence each
  std::vector<config::Override> model_changes;  ///< of the network that it names, to be made before the question's
};

/// Lays what the file says under the keys of `tree` and takes `from` away; a configuration of several GPUs makes a
/// cluster of `hardware`. Does nothing where `from` is not there. Throws ConfigError at the place in the tool's file.
LaidUnder lay_under(config::Node& tree);

}  // namespace ridgeline

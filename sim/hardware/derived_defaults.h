// What a hardware file need not say: defaults of its architecture, and estimates from its own numbers.
#pragma once

#include <string>
#include <vector>

#include "sim/config/node.h"

namespace ridgeline {

/// Adds the keys that `tree` (of hw/NAME.yaml, a mapping) lacks: first those of hw/architectures/ARCHITECTURE-CC.yaml,
/// then estimates such as L2 bandwidth from bytes a clock of an SM. Each brings its source; its origin is the file of
/// defaults. Keys that no default knows stay missing, as do all where the architecture is not known. Throws
/// config::ConfigError where the compute capability is needed and not given.
void fill_defaults(config::Node& tree);

/// "ampere-8.0" …, sorted: the files of hw/architectures.
std::vector<std::string> architecture_names();

}  // namespace ridgeline

// A hardware file as its laws' reader takes it: laid over what it extends, or over the defaults of its architecture.
//
//   extends: nvidia-a100-sxm4-80gb    # a name or a path; keys of this file win; chains are allowed, cycles are not
//   source: "vendor datasheet, 2025"  # stands for the source of every bare value (`count: 58`) of this file
//
// A file that extends none and leaves keys out gets the defaults of its architecture and compute capability
// (hw/architectures/ada-8.9.yaml) and estimates from its own numbers (derived_defaults.h). Whatever comes from
// elsewhere keeps the place it was written at as its origin, which is how a sheet knows it as inherited.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/override.h"

namespace ridgeline {

struct ResolvedFile {
  config::Node base;               ///< as written
  config::Node measured;           ///< with the measured section over it
  std::vector<std::string> files;  ///< all that were read
};

/// `tree` was read from `file` (a name for messages where there is none). Throws config::ConfigError for a measured
/// section that is none, an extends that leads nowhere or in a circle.
ResolvedFile resolve_file(config::Node tree, const std::string& file);

/// Throws config::ConfigError for a change of a key that is read before changes are: extends, base, measured.
void refuse_keys_of_files(std::span<const config::Override> changes);

}  // namespace ridgeline

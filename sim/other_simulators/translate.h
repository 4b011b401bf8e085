// A description of a GPU and of a cluster, as YAML, from another simulator's file: what it says, laid over the nearest
// GPU that ships.
#pragma once

#include <string>

#include "sim/other_simulators/machine_facts.h"

namespace ridgeline::other_simulators {

struct Translation {
  std::string base;     ///< the nearest shipped GPU: a name of hw/
  std::string chip;     ///< YAML of a GPU; empty where the file says nothing of one
  std::string cluster;  ///< YAML of a cluster; empty where the file says nothing of one
};

/// Both texts are read back once: what they say is a valid description.
Translation translated(const MachineFacts& machine, const std::string& file);

}  // namespace ridgeline::other_simulators

// Names of a program to what they mean.
#pragma once

#include "sim/workload/networks/network_program.h"

namespace ridgeline::networks {

/// Gives every name its scope and slot. Throws config::ConfigError at a name that means nothing there.
void resolve_program(NetworkProgram& program);

}  // namespace ridgeline::networks

// Keys of `training.parallel` that say how Megatron-LM's own code was started.
#pragma once

#include "sim/config/value.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Reads them where the framework is Megatron-LM, and refuses them elsewhere. `result` knows its framework, its
/// pipeline and whether sequences are split. Throws ConfigError for what does not go together.
void read_megatron(const config::Mapping& mapping, ParallelDescription& result);

}  // namespace ridgeline

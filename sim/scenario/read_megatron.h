// Keys of `training.parallel` that say how Megatron-LM's own code was started.
#pragma once

#include "sim/config/value.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Reads them where the framework is Megatron-LM, and refuses them elsewhere. After framework and sequence_parallel.
void read_megatron(const config::Mapping& mapping, ParallelDescription& result);

}  // namespace ridgeline

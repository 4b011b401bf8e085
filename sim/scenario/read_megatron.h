// Keys of training.parallel that go with framework: megatron.
#pragma once

#include "sim/config/value.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// `result` knows its framework, its pipeline and whether sequences are split. Throws ConfigError for what does not go
/// together.
void read_megatron(const config::Mapping& mapping, ParallelDescription& result);

}  // namespace ridgeline

// Facts of a tool's configuration into a scenario: counts divided over GPUs, parallelism, adapters, the network.
//
//   ranks of data = GPUs / (tensor x pipeline x context);  accumulation = global batch / (micro batch x ranks of data)
#pragma once

#include "sim/training_files/facts.h"
#include "sim/training_files/training_file.h"

namespace ridgeline::training_files {

/// Fills scenario, gpus, gpus_per_node and notes of `result`. Throws ConfigError for counts that do not divide and for
/// what no key of a scenario says.
void assemble(const Facts& facts, const Asked& asked, TrainingFile& result);

}  // namespace ridgeline::training_files

// Experts spread over ranks: keys of training.parallel, and what they go with.
#pragma once

#include "sim/config/value.h"
#include "sim/workload/model.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// After the degrees and the strategy.
void read_experts(const config::Mapping& mapping, ParallelDescription& result);
/// Of a network, and of a training whose other keys are read.
void check_experts(const ModelDescription& model, const TrainingDescription& training, const config::Value& section);

}  // namespace ridgeline

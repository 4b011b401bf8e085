// `training.parallel.zero_optimization`: DeepSpeed's section of that name.
#pragma once

#include "sim/config/value.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Reads it where the framework is DeepSpeed, whose stage the strategy names, and refuses what that does not go with.
/// After framework, degrees and strategy.
void read_zero(const config::Mapping& mapping, ParallelDescription& result);
/// What DeepSpeed trains in and with. It has an Adam of its own, one kernel over a flat tensor, unless `optimizer` says
/// how else. `mapping`: the section `training`.
void check_deepspeed(const config::Mapping& mapping, TrainingDescription& training);

}  // namespace ridgeline

// The `training.optimizer` section of a scenario.
#pragma once

#include "sim/config/value.h"
#include "sim/hardware/software.h"
#include "sim/workload/training.h"

namespace ridgeline {

OptimizerDescription read_optimizer(const config::Value& value, const Software& software);
/// Once the way of using several GPUs is known. `mapping`: training.
void check_step_in_backward(const config::Mapping& mapping, const TrainingDescription& training, bool compile);

}  // namespace ridgeline

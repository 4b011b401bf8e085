// Types that a network's weights are stored in and its matrix products compute in, and how its loss is computed.
#pragma once

#include "sim/config/value.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Key `weight_dtype`, after `precision`.
void read_weight_dtype(const config::Value& value, TrainingDescription& training);
/// Once adapters and the way of using several GPUs are known.
void check_weight_dtype(const config::Value& value, const TrainingDescription& training);
/// Keys `fp8` and `loss_code`, once adapters and the way of using several GPUs are known.
void read_loss_code(const config::Mapping& mapping, TrainingDescription& training);
void read_scaled(const config::Mapping& mapping, TrainingDescription& training, bool compile);

}  // namespace ridgeline

// The two TF32 switches of a scenario.
#pragma once

#include "sim/config/value.h"
#include "sim/hardware/software.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Keys `tf32` and `cudnn_tf32`, after `precision`. Precision tf32 is fp32 with `tf32: true`; under the other
/// precisions matmuls that stay in fp32 follow the default of this version of PyTorch.
void read_tf32(const config::Mapping& mapping, const Software& software, TrainingDescription& training);

}  // namespace ridgeline

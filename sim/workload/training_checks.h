// What a training run must be like before it is traced, and the FLOPs that its step needs.
#pragma once

#include "sim/workload/model.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Throws UserError for what no trace can be made of.
void check_training(const ModelDescription& model, const TrainingDescription& training);

/// FLOPs of one rank by the model's definition; packed sequences have no scores with each other.
double flops_of_step(const ModelDescription& model, const TrainingDescription& training);

}  // namespace ridgeline

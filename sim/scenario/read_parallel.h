// The `training.parallel` section of a scenario, and the cluster it runs on.
#pragma once

#include "sim/config/value.h"
#include "sim/network/cluster.h"
#include "sim/workload/model.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Every key has PyTorch's default; `data` is what is left of the cluster's GPUs. Throws ConfigError for degrees that
/// do not divide them, and for what is not modelled.
ParallelDescription read_parallel(const config::Value& section, const Cluster& cluster);

/// Throws ConfigError where a model cannot be split as asked; `section` is training.parallel.
void check_split(const ModelDescription& model, const TrainingDescription& training, const config::Value& section);

}  // namespace ridgeline

// What shards in the host's memory (training.parallel.offload) go with.
#pragma once

#include "sim/config/value.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// `mapping`: the section `training`.
void check_host_shards(const config::Mapping& mapping, const TrainingDescription& training);

}  // namespace ridgeline

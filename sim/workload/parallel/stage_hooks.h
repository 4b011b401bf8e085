// What wraps the stages of a pipeline where several ranks hold each: gradients are exchanged in the last backward pass.
#pragma once

#include "sim/workload/parallel/data_parallel.h"
#include "sim/workload/parallel/fully_shard.h"
#include "sim/workload/parallel/stage_runtime.h"

namespace ridgeline::parallel {

/// One of the wrappers, or neither (null).
StageHooks stage_hooks(eager::Recorder& recorder, FullyShard* sharded, DistributedDataParallel* replicated);

}  // namespace ridgeline::parallel

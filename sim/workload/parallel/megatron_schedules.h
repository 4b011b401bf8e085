// In which order the ranks of a pipeline of Megatron-LM compute and exchange.
//
// Follows megatron/core/pipeline_parallel/{schedules,p2p_communication}.py, without overlapped sends
// (--overlap-p2p-communication). 1F1B warms up with one forward pass for each stage behind the rank's; over several
// stages a rank with 2 (ranks - 1 - rank) + (stages a rank - 1) · ranks of them. What is sent and received at one
// point is one batch, and the next pass waits for it.
#pragma once

#include "sim/workload/parallel/schedule.h"

namespace ridgeline::parallel {

/// Of shapes with schedule 1F1B or interleaved, the latter with a multiple of the ranks as micro-batches.
std::vector<RankActions> make_megatron_schedule(const PipelineShape& shape);

}  // namespace ridgeline::parallel

// What the forward graph keeps for the backward graph, and what the backward graph computes again.
//
// Results that library calls of the backward graph read, random numbers and statistics of rows are kept. A point-wise
// result is computed again where what it is made of takes no more memory than itself, as a minimal cut would have it.
#pragma once

#include "sim/workload/compile/graph.h"

namespace ridgeline::compile {

/// Puts copies of forward nodes in front of the backward nodes that need them and marks what is kept as `stored`. With
/// checkpointing (tags of torch.utils.checkpoint, torch/_functorch/partitioners.py) library calls and statistics are
/// computed again too, and nothing is kept but inputs of the graph and what the policy saves.
void partition(Graph& graph, const OpTrace& trace, Recomputation recomputation);

}  // namespace ridgeline::compile

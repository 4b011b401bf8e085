// Cheap point-wise results are computed by each of their users again instead of being written.
//
// A result with one user always is; one with more, where it reads up to four operands and takes up to thirty
// instructions: the thresholds of PyTorch's compiler (torch/_inductor/config.py: realize_reads_threshold,
// realize_opcount_threshold).
#pragma once

#include <vector>

#include "sim/workload/compile/graph.h"

namespace ridgeline::compile {

/// By node: whether its users compute its result. They take over its operands and its instructions.
std::vector<bool> inline_results(Graph& graph);

/// Adds a use of a value, or its bytes where it is more of one that is used already.
void add_use(std::vector<Use>& uses, const Use& use);

}  // namespace ridgeline::compile

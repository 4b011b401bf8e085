// In which order the kernels of a graph run: of four topological orders, the one whose buffers need least memory.
#pragma once

#include <vector>

#include "sim/workload/compile/fuse.h"

namespace ridgeline::compile {

/// `groups` of both graphs in program order, forward first. Within each graph the order is chosen as PyTorch's compiler
/// does (torch/_inductor/memory.py): as it is, least peak memory first, breadth first or depth first, whichever has the
/// lowest estimated peak; the first of equals; without `for_peak_memory` it stays as it is (before PyTorch 2.6). What
/// the script runs behind the graphs stays last.
std::vector<Group> order_kernels(const Graph& graph, std::vector<Group> groups, bool for_peak_memory);

}  // namespace ridgeline::compile

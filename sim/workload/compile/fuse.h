// Which nodes become one kernel.
//
// First point-wise results that are cheap are computed by each of their users again instead of being written (more than
// one user: up to four operands and thirty instructions, the thresholds of PyTorch's compiler). Then nodes are merged,
// best score first seen: a user with the kernel that makes its operand, or two that read the same, where they run over
// the same space and no path leads out of the kernel and back.
#pragma once

#include <string>
#include <vector>

#include "sim/workload/compile/graph.h"

namespace ridgeline::compile {

/// Nodes that run as one kernel, or one library call.
struct Group {
  Node::Kind kind = Node::Kind::pointwise;
  std::vector<NodeId> nodes;
  std::vector<Use> reads, writes;  ///< distinct values from and for other groups
  std::vector<std::string_view> names;
  bool backward = false, by_block = false, gathers = false, alone = false, after = false;
  std::int64_t rows = 1, cols = 1, arithmetic = 0, column_results = 0;
  DType type = DType::fp32;
  bool of_product = false;  ///< as Node
};

/// In the order they run. Changes inputs of nodes: operands of what is computed again in their place.
std::vector<Group> fuse(Graph& graph);

}  // namespace ridgeline::compile

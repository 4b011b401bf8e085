// One eager operation as nodes of the graph: norms and softmax split into statistics of rows and point-wise parts,
// whose results nobody else needs stay in registers.
#pragma once

#include "sim/workload/compile/graph.h"

namespace ridgeline::compile {

class Decomposer {
 public:
  Decomposer(OpTrace& trace, Graph& graph) : trace_(trace), graph_(graph) {}

  /// `inputs` and `outputs` as op_operands.h orders them.
  void add(const Call& call, std::vector<Use> inputs, std::vector<Use> outputs, bool backward, bool after);

  /// Zeros the size of `scores`, filled before the backward graph runs; `call` is what will read them.
  Use zeros_like(const Call& call, ValueId scores, std::int64_t elements);

  bool returns_scores = false;  ///< the script gets the scores, in rows of their own length
  bool tuned = false;           ///< a product of one row is a sum in generated code (torch/_inductor/decomposition.py)

 private:
  Node& node(Node::Kind kind, std::int64_t rows, std::int64_t cols, DType type);
  void finish(Node& node, std::vector<Use> inputs, std::vector<Use> outputs);
  Use fresh(std::int64_t bytes, bool kept = false);
  void norm(const Norm& op, const std::vector<Use>& in, const std::vector<Use>& out);
  void softmax(const Softmax& op, const std::vector<Use>& in, const std::vector<Use>& out);
  void embedding(const Embedding& op, const std::vector<Use>& in, const std::vector<Use>& out);
  void product(Matmul op, std::uint32_t index, std::vector<Use> in, std::vector<Use> out);

  OpTrace& trace_;
  Graph& graph_;
  Node base_;
  std::string_view name_;
};

}  // namespace ridgeline::compile

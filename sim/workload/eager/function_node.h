// Autograd nodes from functions: what is saved, and what the gradients are.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "sim/workload/eager/eager.h"

namespace ridgeline::eager {

/// A backward pass through a node; `saved` tensors in the order in which PyTorch gives them up.
template <std::size_t Count>
struct BackwardOf {
  Eager& eager;
  const Node& node;
  Gradients &in, &out;
  std::array<Tensor, Count> saved;
};

template <std::size_t Count, typename Function>
class FunctionNode final : public Node {
 public:
  FunctionNode(HostClass host, Function function) : Node(host), function_(std::move(function)) {}
  std::array<SavedTensor, Count> saved;

  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    BackwardOf<Count> pass{eager, *this, in, out, {}};
    for (std::size_t i = 0; i < Count; ++i)
      if (saved[i].defined()) pass.saved[i] = saved[i].unpack(eager);
    function_(pass);
  }
  void release() override {
    for (SavedTensor& each : saved) each.release();
  }

 private:
  Function function_;
};

/// A node of an operation on `inputs` that saves `Count` tensors; null where no gradient is needed.
template <std::size_t Count = 0, typename Function>
FunctionNode<Count, Function>* node_for(Eager& eager, std::initializer_list<const Tensor*> inputs, HostClass host,
                                        Function function) {
  if (!eager.needs_node(inputs)) return nullptr;
  return &eager.node<FunctionNode<Count, Function>>(inputs, host, std::move(function));
}

/// Makes `result` the `number`-th one of a node, if there is one.
inline void attach(Tensor& result, Node* node, int number = 0) {
  if (node != nullptr) Eager::attach(result, *node, number);
}

/// The gradient of each operand of a sum is that of the sum.
inline constexpr auto kPassOn = [](auto& pass) {
  for (int i = 0; i < pass.node.edge_count; ++i)
    if (pass.node.needs(i)) pass.out[static_cast<std::size_t>(i)] = pass.in[0];
};

}  // namespace ridgeline::eager

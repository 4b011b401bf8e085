#include "sim/workload/aten/loss.h"

#include "sim/workload/eager/function_node.h"

namespace ridgeline::eager::aten {
Tensor nll_loss(Eager& eager, const Tensor& log_probabilities, const Tensor& target) {
  auto* const node = node_for<3>(eager, {&log_probabilities}, HostClass::nll_backward, [](auto& pass) {
    const Tensor &input = pass.saved[0], &labels = pass.saved[1];
    pass.out[0] = pass.eager.empty(input.sizes, input.type);  // filled with zeros by the operation itself
    pass.eager.recorder.op(NllLoss{true, input.type, input.sizes[0], input.sizes[1]}, {&pass.in[0], &labels},
                           {&pass.out[0]});
  });
  if (node != nullptr) {
    node->saved[0] = eager.save(log_probabilities);
    node->saved[1] = eager.save(target);
  }
  Tensor result = eager.empty({}, log_probabilities.type);
  const Tensor total_weight = eager.empty({}, log_probabilities.type);
  eager.recorder.op(NllLoss{false, log_probabilities.type, log_probabilities.sizes[0], log_probabilities.sizes[1]},
                    {&log_probabilities, &target}, {&result});
  if (node != nullptr) {
    node->saved[2] = eager.save(total_weight);
    Eager::attach(result, *node);
  }
  return result;
}

}  // namespace ridgeline::eager::aten

#include "sim/workload/aten/loss.h"

#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

struct NllLossBackward final : Node {
  NllLossBackward() : Node(HostClass::nll_backward) {}
  SavedTensor self, target, total_weight;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor input = self.unpack(eager), labels = target.unpack(eager), weight = total_weight.unpack(eager);
    out[0] = eager.empty(input.sizes, input.type);  // filled with zeros by the operation itself
    eager.recorder.op(NllLoss{true, input.type, input.sizes[0], input.sizes[1]}, {&in[0], &labels}, {&out[0]});
  }
  void release() override {
    self.release();
    target.release();
    total_weight.release();
  }
};

}  // namespace

Tensor nll_loss(Eager& eager, const Tensor& log_probabilities, const Tensor& target) {
  NllLossBackward* node = nullptr;
  if (eager.needs_node({&log_probabilities})) {
    node = &eager.node<NllLossBackward>({&log_probabilities});
    node->self = eager.save(log_probabilities);
    node->target = eager.save(target);
  }
  Tensor result = eager.empty({}, log_probabilities.type);
  const Tensor total_weight = eager.empty({}, log_probabilities.type);
  eager.recorder.op(NllLoss{false, log_probabilities.type, log_probabilities.sizes[0], log_probabilities.sizes[1]},
                    {&log_probabilities, &target}, {&result});
  if (node != nullptr) {
    node->total_weight = eager.save(total_weight);
    Eager::attach(result, *node);
  }
  return result;
}

}  // namespace ridgeline::eager::aten

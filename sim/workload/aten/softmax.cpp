#include "sim/workload/aten/softmax.h"

#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

struct SoftmaxBackward final : Node {
  SoftmaxBackward(bool is_log, DType type)
      : Node(is_log ? HostClass::log_softmax_backward : HostClass::softmax_backward), log(is_log), input_type(type) {}
  bool log;
  DType input_type;
  bool keeps_input = false;
  SavedTensor input, result;  ///< the input only where the software keeps it: its formula reads no more than its type
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor y = result.unpack(eager), x = keeps_input ? input.unpack(eager) : Tensor{};
    out[0] = eager.empty(in[0].sizes, input_type);
    const std::int64_t cols = y.sizes.last();
    const Tensor product = log ? Tensor{} : eager.empty_like(y);
    eager.recorder.op(Softmax{log, true, y.type, input_type, y.elements() / cols, cols}, {&in[0], &y}, {&out[0]});
  }
  void release() override {
    input.release();
    result.release();
  }
};

Tensor record(Eager& eager, const Tensor& x, bool log, DType result_type) {
  SoftmaxBackward* node = eager.needs_node({&x}) ? &eager.node<SoftmaxBackward>({&x}, log, x.type) : nullptr;
  if (node != nullptr && eager.softmax_saves_input) {
    node->keeps_input = true;
    node->input = eager.save(x);
  }
  Tensor result = eager.empty(x.sizes, result_type);
  const std::int64_t cols = x.sizes.last();
  eager.recorder.op(Softmax{log, false, x.type, result_type, x.elements() / cols, cols}, {&x}, {&result});
  if (node != nullptr) {
    node->result = eager.save(result);
    Eager::attach(result, *node);
  }
  return result;
}

}  // namespace

Tensor softmax(Eager& eager, const Tensor& x, DType result_type) { return record(eager, x, false, result_type); }
Tensor log_softmax(Eager& eager, const Tensor& x) { return record(eager, x, true, x.type); }

}  // namespace ridgeline::eager::aten

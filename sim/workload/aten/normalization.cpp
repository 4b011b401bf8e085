#include "sim/workload/aten/normalization.h"

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/eager/function_node.h"

namespace ridgeline::eager::aten {
namespace {

struct LayerNormBackward final : Node {
  LayerNormBackward() : Node(HostClass::layer_norm_backward) {}
  SavedTensor bias_values, input, weight, mean, deviation;  ///< the bias is read by no formula, but is kept
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor b = bias_values.defined() ? bias_values.unpack(eager) : Tensor{};
    const Tensor x = input.unpack(eager), w = weight.unpack(eager), m = mean.unpack(eager), d = deviation.unpack(eager);
    const std::int64_t cols = x.sizes.last();
    const bool bias = edge_count == 3;
    out[0] = eager.empty_like(x);
    out[1] = eager.empty_like(w);
    if (bias) out[2] = eager.empty_like(w);
    const Norm op{false, true, bias, x.type, x.elements() / cols, cols};
    if (bias) eager.recorder.op(op, {&in[0], &x, &w, &m, &d}, {&out[0], &out[1], &out[2]});
    else eager.recorder.op(op, {&in[0], &x, &w, &m, &d}, {&out[0], &out[1]});
  }
  void release() override {
    bias_values.release();
    input.release();
    weight.release();
    mean.release();
    deviation.release();
  }
};

}  // namespace

Tensor layer_norm(Eager& eager, const Tensor& x, const Tensor& weight, const Tensor* bias) {
  LayerNormBackward* node = nullptr;
  const bool saves = bias != nullptr ? eager.needs_node({&x, &weight, bias}) : eager.needs_node({&x, &weight});
  if (saves) {
    node = bias != nullptr ? &eager.node<LayerNormBackward>({&x, &weight, bias})
                           : &eager.node<LayerNormBackward>({&x, &weight});
    if (bias != nullptr) node->bias_values = eager.save(*bias);
    node->input = eager.save(x);
    node->weight = eager.save(weight);
  }
  const std::int64_t cols = x.sizes.last(), rows = x.elements() / cols;
  Tensor result = eager.empty(x.sizes, x.type);
  Tensor deviation, mean;  // where nothing saves them, the mean dies first
  mean = eager.empty({rows}, DType::fp32);
  deviation = eager.empty({rows}, DType::fp32);
  const Norm op{false, false, bias != nullptr, x.type, rows, cols};
  if (bias != nullptr) eager.recorder.op(op, {&x, &weight, bias}, {&result, &mean, &deviation});
  else eager.recorder.op(op, {&x, &weight}, {&result, &mean, &deviation});
  if (node != nullptr) {
    node->mean = eager.save(mean);
    node->deviation = eager.save(deviation);
    Eager::attach(result, *node);
  }
  return result;
}

Tensor layer_norm(Eager& eager, const Tensor& x) {
  // Where nothing is trained: only the gradient of the input.
  auto* const node = node_for<3>(eager, {&x}, HostClass::layer_norm_backward, [](auto& pass) {
    pass.out[0] = pass.eager.empty_like(pass.saved[0]);
    pointwise(pass.eager, PointwiseFunction::other, {&pass.in[0], &pass.saved[0]}, pass.out[0]);
  });
  if (node != nullptr) node->saved[0] = eager.save(x);
  const std::int64_t cols = x.sizes.last(), rows = x.elements() / cols;
  Tensor result = eager.empty(x.sizes, x.type);
  Tensor deviation, mean;
  mean = eager.empty({rows}, DType::fp32);
  deviation = eager.empty({rows}, DType::fp32);
  eager.recorder.op(Norm{false, false, false, x.type, rows, cols}, {&x, &x}, {&result, &mean, &deviation});
  if (node != nullptr) {
    node->saved[1] = eager.save(mean);
    node->saved[2] = eager.save(deviation);
    Eager::attach(result, *node);
  }
  return result;
}

Tensor dropout(Eager& eager, const Tensor& x) {
  auto* const node = node_for<1>(eager, {&x}, HostClass::pointwise_backward, [](auto& pass) {
    pass.out[0] = pass.eager.empty_like(pass.in[0]);
    pointwise(pass.eager, PointwiseFunction::dropout_backward, {&pass.in[0], &pass.saved[0]}, pass.out[0]);
  });
  const Tensor mask = eager.empty_like(x, DType::boolean);
  Tensor result = eager.empty_like(x);
  eager.recorder.op(Dropout{x.type, x.elements()}, {&x}, {&result, &mask});
  if (node != nullptr) {
    node->saved[0] = eager.save(mask);
    Eager::attach(result, *node);
  }
  return result;
}

}  // namespace ridgeline::eager::aten

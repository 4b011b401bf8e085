#include "sim/workload/aten/loss.h"

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/scan_kernels.h"
#include "sim/workload/aten/views.h"
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

// cunn_SpatialSoftMax goes through the classes of a pixel three times and writes them in the last; nll_loss2d reads a
// class and a score, which is a sector of memory, of each pixel.
Tensor pixel_cross_entropy(Eager& eager, const Tensor& given, const Tensor& target) {
  eager.recorder.host(HostClass::cross_entropy);
  const Tensor scores = contiguous(eager, eager.autocast.on() ? to(eager, given, DType::fp32) : given);
  const std::int64_t pixels = target.elements(), classes = scores.sizes[1];
  const Tensor logarithms = eager.empty(scores.sizes, scores.type);
  auto* const of_logarithms = node_for<1>(eager, {&scores}, HostClass::pointwise_backward, [=](auto& pass) {
    const Tensor& kept = pass.saved[0];
    pass.out[0] = pass.eager.empty(kept.sizes, kept.type);
    scan::kernel(pass.eager, "SpatialSoftMaxBackward", pixels, classes, 12, {&pass.in[0], &pass.in[0], &kept},
                 {&pass.out[0]});
  });
  scan::kernel(eager, "SpatialSoftMaxForward", pixels, classes, 16, {&scores, &scores, &scores}, {&logarithms});
  if (of_logarithms != nullptr) of_logarithms->saved[0] = eager.save(logarithms);
  Tensor rows = logarithms;
  attach(rows, of_logarithms);
  auto* const node = node_for<3>(eager, {&rows}, HostClass::nll_backward, [pixels](auto& pass) {
    const Tensor &kept = pass.saved[0], &classes_of_pixels = pass.saved[1];
    pass.out[0] = full(pass.eager, kept.sizes, kept.type);
    scan::kernel(pass.eager, "nll_loss2d_backward", pixels, 1, 40, {&classes_of_pixels}, {&pass.out[0]});
  });
  const Tensor total_weight = eager.empty({}, scores.type), result_of_kernel = eager.empty({}, scores.type);
  scan::kernel(eager, "nll_loss2d_forward", pixels, 1, 40, {&target}, {&result_of_kernel});
  if (node != nullptr) node->saved = {eager.save(rows), eager.save(target), eager.save(total_weight)};
  Tensor result = result_of_kernel;
  attach(result, node);
  return result;
}

}  // namespace ridgeline::eager::aten

#include "sim/workload/optimizers/gradient_clipping.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameter;
using eager::Parameters;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

using Sizes = std::shared_ptr<const std::vector<std::int64_t>>;

/// Norms of all tensors side by side; torch.cat takes at most 128 inputs a kernel. Returns their norm, drops them.
Tensor norm_of(Eager& eager, std::vector<Tensor>& norms, DType type) {
  const auto count = static_cast<std::int64_t>(norms.size());
  const Tensor stacked = eager.empty({count}, type);
  constexpr std::int64_t kMostInputs = 128;
  std::vector<const Tensor*> inputs;
  for (const Tensor& norm : norms) inputs.push_back(&norm);
  const Tensor* output = &stacked;
  for (std::int64_t done = 0; done < count; done += kMostInputs) {
    const std::int64_t parts = std::min(kMostInputs, count - done);
    const auto some = std::span(inputs).subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(parts));
    eager.recorder.op(Copy{CopyKind::concatenate, type, 1, 1, parts}, some, std::span(&output, 1));
  }
  Tensor norm = eager.empty({}, type);
  eager.recorder.op(Reduction{ReductionKind::norm_all, type, 1, count}, {&stacked}, {&norm});
  return norm;
}

void drop(std::vector<Tensor>& norms) {
  while (!norms.empty()) norms.pop_back();  // a Python list gives up its last element first
}

/// largest / (norm + 1e-6)
Tensor coefficient_of(Eager& eager, const Tensor& norm) {
  const Tensor sum = aten::add_number(eager, norm);
  Tensor reciprocal = eager.empty_like(sum);
  aten::pointwise(eager, PointwiseFunction::reciprocal, {&sum}, reciprocal);
  return aten::scale(eager, reciprocal);
}

Tensor at_most_one(Eager& eager, const Tensor& coefficient) {
  Tensor clamped = eager.empty_like(coefficient);
  aten::pointwise(eager, PointwiseFunction::clamp, {&coefficient}, clamped);
  return clamped;
}

/// `if coefficient < 1`: a comparison on the GPU, its result on the host.
void ask(Eager& eager, const Tensor& coefficient) {
  const Tensor smaller = eager.empty_like(coefficient);
  aten::pointwise(eager, PointwiseFunction::equal, {&coefficient}, smaller);
  read_on_host(eager, smaller);
}

/// Each tensor's chunks leave a partial norm: as many places for every tensor as the largest has chunks.
std::vector<Tensor> norms_by_list(Eager& eager, DType type, const Sizes& sizes, const TensorList& gradients) {
  constexpr std::int64_t kChunk = 65536;
  const auto count = static_cast<std::int64_t>(sizes->size());
  const std::int64_t largest = *std::max_element(sizes->begin(), sizes->end());
  const Tensor partial = eager.empty({count * ((largest + kChunk - 1) / kChunk)}, DType::fp32);
  std::vector<Tensor> norms;
  for (std::int64_t i = 0; i < count; ++i) norms.push_back(eager.empty({}, type));
  foreach (eager, MultiTensorFunction::norm, type, sizes, {gradients})
    ;
  return norms;
}

/// The product with a list took a number, for which the host waited, until it took a tensor.
void clip_lists(Eager& eager, DType type, const Sizes& sizes, const TensorList& gradients, bool waits) {
  std::vector<Tensor> norms = norms_by_list(eager, type, sizes, gradients);
  Tensor total = norm_of(eager, norms, type);
  drop(norms);
  Tensor coefficient = coefficient_of(eager, total);
  Tensor clamped = at_most_one(eager, coefficient);
  if (waits) read_on_host(eager, clamped);
  foreach (eager, MultiTensorFunction::mul, type, sizes, {gradients})
    ;
  coefficient = Tensor{};
  clamped = Tensor{};
  total = Tensor{};
}

/// Tensor after tensor, every operation a call of the script.
void clip_one_by_one(Eager& eager, std::span<const Tensor* const> gradients, bool waits, bool too_large) {
  const auto call = [&](std::size_t times) {
    eager.recorder.host(HostClass::optimizer_op, static_cast<std::int64_t>(times));
  };
  const DType type = gradients.front()->type;
  std::vector<Tensor> norms;
  call(gradients.size());
  for (const Tensor* gradient : gradients) {
    norms.push_back(eager.empty({}, type));
    eager.recorder.op(Reduction{ReductionKind::norm_all, type, 1, gradient->elements()}, {gradient}, {&norms.back()});
  }
  constexpr std::size_t kScalarCalls = 6;  // stack, norm, sum, reciprocal, product, comparison or clamp
  call(kScalarCalls);
  Tensor total = norm_of(eager, norms, type);
  drop(norms);
  Tensor coefficient = coefficient_of(eager, total);
  if (waits) {
    ask(eager, coefficient);
    if (!too_large) return;
  } else {
    coefficient = at_most_one(eager, coefficient);
  }
  call(gradients.size());
  for (const Tensor* gradient : gradients)
    aten::pointwise(eager, PointwiseFunction::mul, {gradient, &coefficient}, *gradient);
}

/// multi_tensor_l2norm, its result on the host, multi_tensor_scale by a number.
void clip_by_apex(Eager& eager, DType type, const Sizes& sizes, const TensorList& gradients) {
  constexpr std::int64_t kCalls = 4;  // zeros for partial norms, norm, item, product
  eager.recorder.host(HostClass::optimizer_op, kCalls);
  eager.recorder.host(HostClass::per_parameter_clip, static_cast<std::int64_t>(sizes->size()));
  constexpr std::int64_t kPartialNorms = 320;  // one a block
  const Tensor partial = aten::full(eager, {kPartialNorms}, DType::fp32);
  const Tensor norm = eager.empty({1}, DType::fp32);
  foreach (eager, MultiTensorFunction::norm, type, sizes, {gradients})
    ;
  read_on_host(eager, norm);
  foreach (eager, MultiTensorFunction::mul, type, sizes, {gradients})
    ;
}

void clip_type(Eager& eager, Parameters& parameters, GradientClipper clipper, ClippingStyle style) {
  const DType type = parameters.front().value.type;
  if (clipper == GradientClipper::apex)
    return clip_by_apex(eager, type, sizes_of(parameters), gradients_of(parameters));
  if (style.by_lists) {
    eager.recorder.host(HostClass::clip_fixed);
    eager.recorder.host(HostClass::per_parameter_clip, static_cast<std::int64_t>(parameters.size()));
    return clip_lists(eager, type, sizes_of(parameters), gradients_of(parameters), style.waits);
  }
  TensorList gradients;
  for (const Parameter& parameter : parameters)
    if (parameter.gradient.defined()) gradients.push_back(&parameter.gradient);
  clip_one_by_one(eager, gradients, style.waits, true);
}

}  // namespace

// A norm for each type, where clip_grad_norm_ joins them in one more kernel.
void clip_gradients(Eager& eager, Parameters& parameters, GradientClipper clipper, ClippingStyle style) {
  for_each_type(parameters, [&](Parameters& of_type) { clip_type(eager, of_type, clipper, style); });
}

void clip_gradient(Eager& eager, const Parameter& parameter, ClippingStyle style) {
  const Tensor* gradient = &parameter.gradient;
  if (!style.by_lists) {
    return clip_one_by_one(eager, std::span(&gradient, 1), style.waits, false);
  }
  constexpr std::int64_t kCalls = 8;  // norm, stack, norm, sum, reciprocal, product, clamp, product
  eager.recorder.host(HostClass::optimizer_op, kCalls);
  const std::vector<std::int64_t> size{parameter.value.elements()};
  clip_lists(eager, parameter.value.type, std::make_shared<const std::vector<std::int64_t>>(size), {gradient},
             style.waits);
}

}  // namespace ridgeline::optimizers

#include "sim/workload/optimizers/muon.h"

#include <utility>

#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameter;
using eager::Parameters;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

constexpr int kIterations = 5;  ///< DEFAULT_NS_STEPS of torch/optim/_muon.py

bool hidden_matrix(const Parameter& parameter) {
  return parameter.accumulate.layer >= 0 && parameter.value.sizes.rank() == 2;
}

/// addmm with a whole matrix to add to: the result begins as its copy.
Tensor added_product(Eager& eager, const Tensor& x, const Tensor& a, const Tensor& b) {
  const bool transposed = x.strides.last() != 1;
  const Tensor result = transposed ? aten::contiguous(eager, x) : eager.empty(x.sizes, x.type);
  if (!transposed) eager.recorder.op(Copy{CopyKind::contiguous, x.type, 1, x.elements(), 1}, {&x}, {&result});
  aten::mm_into(eager, a, b, result);
  return result;
}

// _zeropower_via_newtonschulz: the wider side becomes that of the columns.
Tensor orthogonal(Eager& eager, const Tensor& update) {
  Tensor x = update.type == DType::bf16 ? update : aten::to(eager, update, DType::bf16);
  const bool tall = x.sizes[0] > x.sizes[1];
  if (tall) x = aten::t(eager, x);
  {
    const Tensor norm = eager.empty({}, x.type);
    eager.recorder.op(Reduction{ReductionKind::norm_all, x.type, 1, x.elements()}, {&x}, {&norm});
    aten::pointwise(eager, PointwiseFunction::clamp, {&norm}, norm);
    aten::pointwise(eager, PointwiseFunction::divide, {&x, &norm}, x);
  }
  Tensor gram, polynomial;
  for (int i = 0; i < kIterations; ++i) {
    constexpr int kCalls = 4;
    eager.recorder.host(HostClass::optimizer_op, kCalls);
    gram = aten::mm(eager, x, aten::t(eager, x));
    polynomial = added_product(eager, gram, gram, gram);
    x = added_product(eager, x, polynomial, x);
  }
  return tall ? aten::t(eager, x) : x;
}

void step_matrix(Eager& eager, Parameter& parameter) {
  constexpr int kCalls = 8;  // Python-visible operations a tensor beside its products
  eager.recorder.host(HostClass::optimizer_op, kCalls);
  const Tensor &value = parameter.value, &gradient = parameter.gradient;
  if (parameter.states.empty()) parameter.states.push_back(zero_state(eager, gradient.sizes, gradient.type));
  const Tensor& momentum = parameter.states[0];
  aten::pointwise(eager, PointwiseFunction::other, {&momentum, &gradient}, momentum);
  Tensor update = eager.empty_like(gradient);
  aten::pointwise(eager, PointwiseFunction::other, {&gradient, &momentum}, update);
  update = orthogonal(eager, update);
  aten::pointwise(eager, PointwiseFunction::scale, {&value}, value);
  aten::add_in_place(eager, value, update);
}

}  // namespace

void Muon::step(Eager& eager, Parameters& parameters, const Tensor& overflow_flag) {
  with_those(parameters, hidden_matrix, [&](Parameters& matrices) {
    for (Parameter& parameter : matrices) step_matrix(eager, parameter);
  });
  with_those(
      parameters, [](const Parameter& parameter) { return !hidden_matrix(parameter); },
      [&](Parameters& others) { others_.step(eager, others, overflow_flag); });
}

}  // namespace ridgeline::optimizers

#include "sim/workload/optimizers/schedule_free.h"

#include "sim/workload/aten/pointwise.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameters;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

void make_iterates(Eager& eager, Parameters& parameters) {
  for (auto& parameter : parameters) {
    if (!parameter.states.empty()) continue;
    const Tensor& value = parameter.value;
    Tensor fast = eager.empty_like(value);  // z begins as a copy of the weights
    eager.recorder.set_category(fast.storage.id(), Category::optimizer_state);
    eager.recorder.op(Copy{CopyKind::contiguous, value.type, 1, value.elements(), 1}, {&value}, {&fast});
    parameter.states.push_back(std::move(fast));
    parameter.states.push_back(zero_state(eager, value.sizes, value.type));
  }
}

// The gradient is normalized in place (schedulefree/adamw_schedulefree.py).
void average_lists(Eager& eager, Parameters& parameters) {
  using F = MultiTensorFunction;
  const auto sizes = sizes_of(parameters);
  const TensorList values = values_of(parameters), gradients = gradients_of(parameters),
                   fast = states_of(parameters, 0), squares = states_of(parameters, 1);
  const auto call = [&](F function, std::initializer_list<TensorList> lists) {
    foreach (eager, function, parameters.front().value.type, sizes, lists)
      ;
  };
  call(F::mul, {squares});
  call(F::addcmul, {squares, gradients});
  std::vector<Tensor> denominators;
  for (const auto& parameter : parameters) denominators.push_back(eager.empty_like(parameter.value));
  call(F::copy, {squares, all_of(denominators)});
  call(F::divide, {all_of(denominators)});
  call(F::add_scalar, {all_of(denominators)});
  call(F::add, {gradients, all_of(denominators)});
  call(F::lerp, {values, fast});
  call(F::add, {values, gradients});
  call(F::add, {fast, gradients});
}

void average_one(Eager& eager, const eager::Parameter& parameter) {
  using F = PointwiseFunction;
  constexpr int kCalls = 9;  // Python-visible operations a tensor
  eager.recorder.host(HostClass::optimizer_op, kCalls);
  const Tensor &value = parameter.value, &gradient = parameter.gradient, &fast = parameter.states[0],
               &square = parameter.states[1];
  aten::pointwise(eager, F::scale, {&square}, square);
  aten::pointwise(eager, F::other, {&square, &gradient, &gradient}, square);
  const Tensor denominator = eager.empty_like(square);
  aten::pointwise(eager, F::divide, {&square}, denominator);
  aten::pointwise(eager, F::square_root, {&denominator}, denominator);
  aten::pointwise(eager, F::add, {&denominator}, denominator);
  aten::pointwise(eager, F::divide, {&gradient, &denominator}, gradient);
  aten::pointwise(eager, F::other, {&value, &fast}, value);
  aten::add_in_place(eager, value, gradient);
  aten::add_in_place(eager, fast, gradient);
}

}  // namespace

void ScheduleFree::step(Eager& eager, Parameters& parameters, const Tensor&) {
  make_iterates(eager, parameters);
  if (!by_lists_) {
    for (const auto& parameter : parameters) average_one(eager, parameter);
    return;
  }
  eager.recorder.host(HostClass::foreach_fixed);
  eager.recorder.host(HostClass::per_parameter_foreach, static_cast<std::int64_t>(parameters.size()));
  average_lists(eager, parameters);
}

}  // namespace ridgeline::optimizers

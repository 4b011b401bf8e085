#include "sim/workload/optimizers/lion.h"

#include "sim/workload/aten/pointwise.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameters;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

// After _multi_tensor_lion of timm/optim/lion.py.
void sign_lists(Eager& eager, Parameters& parameters) {
  using F = MultiTensorFunction;
  const auto sizes = sizes_of(parameters);
  const DType type = parameters.front().value.type;
  const TensorList values = values_of(parameters), gradients = gradients_of(parameters),
                   averages = states_of(parameters, 0);
  const auto call = [&](F function, std::initializer_list<TensorList> lists) {
    foreach (eager, function, type, sizes, lists)
      ;
  };
  call(F::mul, {values});
  std::vector<Tensor> updates, signs;
  for (const auto& parameter : parameters) updates.push_back(eager.empty_like(parameter.value));
  call(F::copy, {averages, all_of(updates)});
  call(F::add, {all_of(updates), gradients});
  for (const Tensor& update : updates) {
    eager.recorder.host(HostClass::optimizer_op);
    signs.push_back(eager.empty_like(update));
    aten::pointwise(eager, PointwiseFunction::other, {&update}, signs.back());
  }
  updates.clear();
  call(F::add, {values, all_of(signs)});
  call(F::mul, {averages});
  call(F::add, {averages, gradients});
}

// After update_fn of lion_pytorch/lion_pytorch.py.
void sign_one(Eager& eager, const eager::Parameter& parameter) {
  using F = PointwiseFunction;
  constexpr int kCalls = 8;  // Python-visible operations a tensor
  eager.recorder.host(HostClass::optimizer_op, kCalls);
  const Tensor &value = parameter.value, &gradient = parameter.gradient, &average = parameter.states[0];
  aten::pointwise(eager, F::scale, {&value}, value);
  Tensor copy = eager.empty_like(average);
  eager.recorder.op(Copy{CopyKind::contiguous, average.type, 1, average.elements(), 1}, {&average}, {&copy});
  aten::pointwise(eager, F::scale, {&copy}, copy);
  const Tensor update = eager.empty_like(average);
  aten::pointwise(eager, F::add, {&copy, &gradient}, update);
  copy = Tensor{};
  aten::pointwise(eager, F::other, {&update}, update);
  aten::add_in_place(eager, value, update);
  aten::pointwise(eager, F::scale, {&average}, average);
  aten::add_in_place(eager, average, gradient);
}

}  // namespace

void Lion::step(Eager& eager, Parameters& parameters, const Tensor&) {
  for (auto& parameter : parameters)
    if (parameter.states.empty())
      parameter.states.push_back(zero_state(eager, parameter.value.sizes, parameter.value.type));
  if (!by_lists_) {
    for (const auto& parameter : parameters) sign_one(eager, parameter);
    return;
  }
  eager.recorder.host(HostClass::foreach_fixed);
  eager.recorder.host(HostClass::per_parameter_foreach_sgd, static_cast<std::int64_t>(parameters.size()));
  sign_lists(eager, parameters);
}

}  // namespace ridgeline::optimizers

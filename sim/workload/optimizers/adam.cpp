#include "sim/workload/optimizers/adam.h"

#include "sim/workload/aten/pointwise.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameters;
using eager::Tensor;
namespace aten = eager::aten;

void Adam::step(Eager& eager, Parameters& parameters, const Tensor& overflow_flag) {
  const auto count = static_cast<std::int64_t>(parameters.size());
  if (!parameters.empty() && parameters.front().states.empty()) create_states(eager, parameters);
  switch (implementation_) {
    case OptimizerImplementation::foreach:
      eager.recorder.host(HostClass::foreach_fixed);
      eager.recorder.host(HostClass::per_parameter_foreach, count);
      return step_foreach(eager, parameters);
    case OptimizerImplementation::fused:
      eager.recorder.host(HostClass::fused_fixed);
      eager.recorder.host(HostClass::per_parameter_fused, count);
      return step_fused(eager, parameters, overflow_flag.defined());
    case OptimizerImplementation::for_loop: return step_for_loop(eager, parameters);
  }
}

void Adam::create_states(Eager& eager, Parameters& parameters) {
  for (auto& parameter : parameters) {
    if (implementation_ == OptimizerImplementation::fused)
      parameter.states.push_back(zero_state(eager, {}, DType::fp32));  // step count
    for (int i = 0; i < (compensated_ ? 3 : 2); ++i)
      parameter.states.push_back(zero_state(eager, parameter.value.sizes, parameter.value.type));
  }
}

void Adam::step_foreach(Eager& eager, Parameters& parameters) {
  using F = MultiTensorFunction;
  const auto sizes = sizes_of(parameters);
  const DType type = parameters.front().value.type;
  const TensorList values = values_of(parameters), gradients = gradients_of(parameters),
                   averages = states_of(parameters, 0), squares = states_of(parameters, 1);
  const auto call = [&](F function, std::initializer_list<TensorList> lists, bool scalars = false) {
    foreach (eager, function, type, sizes, lists, scalars)
      ;
  };
  if (decoupled_decay_) call(F::mul, {values});
  call(F::lerp, {averages, gradients});
  call(F::mul, {squares});
  call(F::addcmul, {squares, gradients});
  const auto list = [&] {
    std::vector<Tensor> result;
    result.reserve(parameters.size());
    for (auto& parameter : parameters) result.push_back(eager.empty_like(parameter.value));
    return result;
  };
  std::vector<Tensor> roots = list(), denominators;
  call(F::square_root, {squares, all_of(roots)});
  call(F::divide, {all_of(roots)}, true);
  if (foreach_lists_ > 1) denominators = list();
  const TensorList divisors = all_of(denominators.empty() ? roots : denominators);
  call(F::add_scalar, {divisors});
  if (compensated_) {
    // The update joins the compensation; the parameter takes the sum, and what rounding lost of it is kept.
    const TensorList lost = states_of(parameters, 2);
    call(F::addcdiv, {lost, averages, divisors}, true);
    call(F::copy, {values, divisors});
    call(F::add, {values, lost});
    call(F::add, {divisors, values});
    call(F::add, {lost, divisors});
  } else {
    call(F::addcdiv, {values, averages, divisors}, true);
  }
  // A Python list gives up its last element first; variables of a function die in the order they were made.
  for (auto* dying : {&roots, &denominators})
    while (!dying->empty()) dying->pop_back();
}

void Adam::step_fused(Eager& eager, Parameters& parameters, bool may_skip) {
  const auto one_each = std::make_shared<const std::vector<std::int64_t>>(parameters.size(), 1);
  const TensorList counts = states_of(parameters, 0);
  foreach (eager, MultiTensorFunction::add_scalar, DType::fp32, one_each, {counts})
    ;
  const MultiTensorFunction function =
      decoupled_decay_ ? MultiTensorFunction::fused_adamw : MultiTensorFunction::fused_adam;
  foreach (eager, function, parameters.front().value.type, sizes_of(parameters),
           {values_of(parameters), gradients_of(parameters), states_of(parameters, 1), states_of(parameters, 2)})
    ;
  if (may_skip)
    foreach (eager, MultiTensorFunction::add, DType::fp32, one_each, {counts, counts})
      ;  // a skipped step does not count
}

void Adam::step_for_loop(Eager& eager, Parameters& parameters) {
  using F = PointwiseFunction;
  const auto one = [&](F function, std::initializer_list<const Tensor*> inputs, const Tensor& output) {
    aten::pointwise(eager, function, inputs, output);
  };
  Tensor denominator;
  for (auto& parameter : parameters) {
    eager.recorder.host(HostClass::per_parameter_for_loop);
    const Tensor &value = parameter.value, &gradient = parameter.gradient, &average = parameter.states[0],
                 &square = parameter.states[1];
    if (decoupled_decay_) one(F::scale, {&value}, value);
    one(F::other, {&average, &gradient}, average);
    one(F::scale, {&square}, square);
    one(F::other, {&square, &gradient, &gradient}, square);
    Tensor root = eager.empty_like(square);
    one(F::square_root, {&square}, root);
    Tensor fresh = eager.empty_like(square);
    one(F::divide, {&root}, fresh);
    root = Tensor{};
    denominator = std::move(fresh);
    one(F::add, {&denominator}, denominator);
    if (compensated_) {
      const Tensor& lost = parameter.states[2];
      one(F::other, {&lost, &average, &denominator}, lost);
      const Tensor before = eager.empty_like(value);
      eager.recorder.op(Copy{CopyKind::contiguous, value.type, 1, value.elements(), 1}, {&value}, {&before});
      one(F::add_in_place, {&value, &lost}, value);
      one(F::other, {&before, &value}, before);
      one(F::add_in_place, {&lost, &before}, lost);
    } else {
      one(F::other, {&value, &average, &denominator}, value);
    }
  }
}

}  // namespace ridgeline::optimizers

#include "sim/workload/optimizers/lamb.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameters;
using eager::Tensor;

// After apex/optimizers/fused_lamb.py and csrc/multi_tensor_lamb.cu: the update takes the place of the gradient.
void Lamb::step(Eager& eager, Parameters& parameters, const Tensor&) {
  using F = MultiTensorFunction;
  for (auto& parameter : parameters)
    while (parameter.states.size() < 2)
      parameter.states.push_back(zero_state(eager, parameter.value.sizes, parameter.value.type));
  eager.recorder.host(HostClass::fused_fixed);
  eager.recorder.host(HostClass::per_parameter_fused, static_cast<std::int64_t>(parameters.size()));
  const auto sizes = sizes_of(parameters);
  const TensorList values = values_of(parameters), gradients = gradients_of(parameters);
  const auto call = [&](F function, std::initializer_list<TensorList> lists) {
    foreach (eager, function, parameters.front().value.type, sizes, lists)
      ;
  };
  call(F::norm, {gradients});
  call(F::norm, {values});
  call(F::fused_adam, {gradients, values, states_of(parameters, 0), states_of(parameters, 1)});
  call(F::norm, {gradients});
  call(F::add, {values, gradients});
}

}  // namespace ridgeline::optimizers

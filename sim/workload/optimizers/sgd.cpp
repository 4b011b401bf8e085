#include "sim/workload/optimizers/sgd.h"

#include "sim/workload/aten/pointwise.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameters;
using eager::Tensor;

void Sgd::step(Eager& eager, Parameters& parameters, const Tensor&) {
  const auto count = static_cast<std::int64_t>(parameters.size());
  const auto sizes = sizes_of(parameters);
  const DType type = parameters.front().value.type;
  const bool first = momentum_ && parameters.front().states.empty();
  const bool in_lists = implementation_ != OptimizerImplementation::for_loop;
  if (in_lists) {
    eager.recorder.host(implementation_ == OptimizerImplementation::fused ? HostClass::fused_fixed
                                                                          : HostClass::foreach_fixed);
    eager.recorder.host(implementation_ == OptimizerImplementation::fused ? HostClass::per_parameter_fused
                                                                          : HostClass::per_parameter_foreach_sgd,
                        count);
  }
  if (first) {
    // The first momentum is a copy of the gradient.
    for (auto& parameter : parameters) {
      Tensor state = eager.empty_like(parameter.value);
      eager.recorder.set_category(state.storage.id(), Category::optimizer_state);
      eager.recorder.op(Copy{CopyKind::contiguous, type, 1, state.elements(), 1}, {&parameter.gradient}, {&state});
      parameter.states.push_back(std::move(state));
    }
  }
  const auto updates = [&] { return momentum_ ? states_of(parameters, 0) : gradients_of(parameters); };
  switch (implementation_) {
    case OptimizerImplementation::fused:
      return foreach (eager, MultiTensorFunction::fused_sgd, type, sizes,
                      {values_of(parameters), gradients_of(parameters), updates()});
    case OptimizerImplementation::foreach:
      if (momentum_ && !first) {
        foreach (eager, MultiTensorFunction::mul, type, sizes, {updates()})
          ;
        foreach (eager, MultiTensorFunction::add, type, sizes, {updates(), gradients_of(parameters)})
          ;
      }
      return foreach (eager, MultiTensorFunction::add, type, sizes, {values_of(parameters), updates()});
    case OptimizerImplementation::for_loop:
      for (auto& parameter : parameters) {
        eager.recorder.host(HostClass::optimizer_op, momentum_ ? 3 : 1);
        const Tensor& update = momentum_ ? parameter.states[0] : parameter.gradient;
        if (momentum_ && !first) {
          eager::aten::pointwise(eager, PointwiseFunction::scale, {&update}, update);
          eager::aten::add_in_place(eager, update, parameter.gradient);
        }
        eager::aten::add_in_place(eager, parameter.value, update);
      }
  }
}

}  // namespace ridgeline::optimizers

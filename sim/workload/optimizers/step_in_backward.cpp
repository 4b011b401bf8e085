#include "sim/workload/optimizers/step_in_backward.h"

#include <utility>

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameter;
using eager::Parameters;
using eager::Tensor;

StepInBackward::StepInBackward(Eager& eager, Optimizer& optimizer, Parameters& parameters, std::function<bool()> waits)
    : eager_(eager), optimizer_(optimizer), waits_(std::move(waits)) {
  for (Parameter& parameter : parameters)
    parameter.after_accumulate = [this, &parameter] {
      if (waits_()) waiting_.push_back(&parameter);
      else step(parameter);
    };
}

void StepInBackward::catch_up() {
  for (Parameter* parameter : std::exchange(waiting_, {})) step(*parameter);
}

void StepInBackward::step(Parameter& parameter) {
  const Phase phase = std::exchange(eager_.recorder.phase, Phase::optimizer);
  const bool gradients_enabled = std::exchange(eager_.gradients_enabled, false);
  Parameters alone(1);  // an optimizer of its own has a list of one
  Parameter& one = alone.front();
  one.value = parameter.value;
  one.gradient = std::exchange(parameter.gradient, Tensor{});
  one.states = std::exchange(parameter.states, {});
  const bool first = one.states.empty();
  optimizer_.step(eager_, alone, {});
  if (first)
    for (const Tensor& state : one.states)
      eager_.recorder.set_layer_like(state.storage.id(), parameter.value.storage.id());
  optimizer_.clear_gradients(eager_, alone, false);
  parameter.states = std::move(one.states);
  eager_.gradients_enabled = gradients_enabled;
  eager_.recorder.phase = phase;
}

}  // namespace ridgeline::optimizers

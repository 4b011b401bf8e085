#include "sim/workload/optimizers/gradient_hooks.h"

#include <utility>

#include "sim/workload/optimizers/on_host.h"
#include "sim/workload/optimizers/step_in_backward.h"

namespace ridgeline::optimizers {

std::unique_ptr<GradientHooks> make_gradient_hooks(eager::Eager& eager, Optimizer& optimizer,
                                                   eager::Parameters& parameters, OptimizerDescription how,
                                                   std::function<bool()> waits) {
  if (how.in_backward) return std::make_unique<StepInBackward>(eager, optimizer, parameters, std::move(waits));
  if (how.offload != OptimizerOffload::none)
    return std::make_unique<OnHost>(eager, optimizer, parameters, how, std::move(waits));
  return nullptr;
}

}  // namespace ridgeline::optimizers

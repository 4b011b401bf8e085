// Optimizer steps inside the backward pass: each parameter steps as soon as its gradient has arrived, in a hook of
// register_post_accumulate_grad_hook, and drops it.
#pragma once

#include <functional>
#include <vector>

#include "sim/workload/optimizers/gradient_hooks.h"

namespace ridgeline::optimizers {

class StepInBackward final : public GradientHooks {
 public:
  /// `waits`: whether a compiled graph runs, behind which hooks are called.
  StepInBackward(eager::Eager& eager, Optimizer& optimizer, eager::Parameters& parameters, std::function<bool()> waits);
  /// Steps what waited for the end of a graph.
  void catch_up() override;
  /// Every parameter has stepped.
  void step() override {}

 private:
  void step(eager::Parameter& parameter);

  eager::Eager& eager_;
  Optimizer& optimizer_;
  std::function<bool()> waits_;
  std::vector<eager::Parameter*> waiting_;
};

}  // namespace ridgeline::optimizers

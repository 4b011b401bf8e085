// Optimizers that hear of each gradient as it arrives (register_post_accumulate_grad_hook).
#pragma once

#include <functional>
#include <memory>

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

class GradientHooks {
 public:
  virtual ~GradientHooks() = default;
  /// Does what waited for the end of a compiled graph.
  virtual void catch_up() = 0;
  /// Behind the backward pass.
  virtual void step() = 0;
};

/// Null where the optimizer steps behind the backward pass on the device alone. `waits`: whether a compiled graph runs,
/// behind which hooks are called.
std::unique_ptr<GradientHooks> make_gradient_hooks(eager::Eager& eager, Optimizer& optimizer,
                                                   eager::Parameters& parameters, OptimizerDescription how,
                                                   std::function<bool()> waits);

}  // namespace ridgeline::optimizers

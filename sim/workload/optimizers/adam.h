// Adam and AdamW (torch.optim), and AdamW with Kahan summation of 16-bit parameters.
#pragma once

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

/// Two states a parameter. foreach: eight calls over all tensors and one temporary as large as the parameters, or
/// two where the denominator is not made in place (`foreach_lists`, before PyTorch 2.1); fused: one kernel, step counts
/// on the device; for-loop: eight kernels a tensor. `decoupled_decay` is AdamW. `compensated` keeps, beside each
/// parameter, what rounding lost of it.
class Adam final : public Optimizer {
 public:
  Adam(OptimizerImplementation implementation, bool decoupled_decay, bool compensated, int foreach_lists)
      : implementation_(implementation),
        decoupled_decay_(decoupled_decay),
        compensated_(compensated),
        foreach_lists_(foreach_lists) {}
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override;

 private:
  void create_states(eager::Eager& eager, eager::Parameters& parameters);
  void step_foreach(eager::Eager& eager, eager::Parameters& parameters);
  void step_fused(eager::Eager& eager, eager::Parameters& parameters, bool may_skip);
  void step_for_loop(eager::Eager& eager, eager::Parameters& parameters);

  OptimizerImplementation implementation_;
  bool decoupled_decay_, compensated_;
  int foreach_lists_;
};

}  // namespace ridgeline::optimizers

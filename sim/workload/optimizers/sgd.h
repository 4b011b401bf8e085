// Stochastic gradient descent (torch.optim.SGD), plain or with momentum.
#pragma once

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

class Sgd final : public Optimizer {
 public:
  Sgd(OptimizerImplementation implementation, bool momentum) : implementation_(implementation), momentum_(momentum) {}
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override;

 private:
  OptimizerImplementation implementation_;
  bool momentum_;
};

}  // namespace ridgeline::optimizers

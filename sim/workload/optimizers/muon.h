// Muon: the momentum of each matrix of the blocks is made orthogonal by Newton-Schulz iterations (torch.optim.Muon);
// all other parameters take AdamW.
#pragma once

#include "sim/workload/optimizers/adam.h"
#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

class Muon final : public Optimizer {
 public:
  /// `implementation`: of the AdamW beside it.
  Muon(OptimizerImplementation implementation, int foreach_lists)
      : others_(implementation, true, false, foreach_lists) {}
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override;

 private:
  Adam others_;
};

}  // namespace ridgeline::optimizers

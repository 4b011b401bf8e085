// torch.optim.Adafactor: one tensor after the other. A matrix keeps one state a row and one a column and estimates the
// second moment of each element by their product; the host waits for two norms of every tensor.
#pragma once

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

class Adafactor final : public Optimizer {
 public:
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override;
};

}  // namespace ridgeline::optimizers

// LAMB as apex's FusedLAMB runs it: AdamW's update in one kernel over lists, scaled by the norms of weights and update.
#pragma once

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

class Lamb final : public Optimizer {
 public:
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override;
};

}  // namespace ridgeline::optimizers

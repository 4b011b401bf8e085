// AdamWScheduleFree: weights are kept as an interpolation of a fast iterate and an average, without a schedule.
#pragma once

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

class ScheduleFree final : public Optimizer {
 public:
  explicit ScheduleFree(bool by_lists) : by_lists_(by_lists) {}
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override;

 private:
  bool by_lists_;
};

}  // namespace ridgeline::optimizers

// BertAdam, the optimizer of the first BERT codes (as in NVIDIA's examples of 2019 to 2023): Adam without correction of
// bias in a loop over the tensors, every operation of it a kernel and most with a result of its own.
#pragma once

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

class BertAdam final : public Optimizer {
 public:
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override;
};

}  // namespace ridgeline::optimizers

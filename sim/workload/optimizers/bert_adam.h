// BertAdam, the optimizer of the first BERT codes (as in NVIDIA's examples of 2019 to 2023): Adam without correction of
// bias in a loop over the tensors, which clips each tensor's gradient by its own norm; every operation is a kernel and
// most have a result of their own.
#pragma once

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

class BertAdam final : public Optimizer {
 public:
  explicit BertAdam(ClippingStyle clipping) : clipping_(clipping) {}
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override;

 private:
  ClippingStyle clipping_;
};

}  // namespace ridgeline::optimizers

// Lion: the sign of an average of gradients moves the weights. Lists as timm has them, one tensor after the other as
// lion-pytorch does it; its fused kernels are those of bitsandbytes (bits_and_bytes.h).
#pragma once

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

class Lion final : public Optimizer {
 public:
  explicit Lion(bool by_lists) : by_lists_(by_lists) {}
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override;

 private:
  bool by_lists_;
};

}  // namespace ridgeline::optimizers

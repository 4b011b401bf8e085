// AdamW with states in eight bits (bitsandbytes): one kernel a tensor; each block of elements shares a fp32 scale.
#pragma once

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

class Adam8Bit final : public Optimizer {
 public:
  /// Smaller tensors keep fp32 states.
  static constexpr std::int64_t kSmallestQuantized = 4096;
  /// Elements that share a scale.
  static constexpr std::int64_t kBlock = 256;
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override;

 private:
  eager::Tensor maps_[2];  ///< the 256 values a byte may mean, for each state
};

}  // namespace ridgeline::optimizers

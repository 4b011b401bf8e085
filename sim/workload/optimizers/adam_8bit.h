// AdamW with states in eight bits (bitsandbytes): one kernel a tensor; each block of elements shares a fp32 scale.
#pragma once

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

class Adam8Bit final : public Optimizer {
 public:
  /// Smaller tensors keep fp32 states.
  static constexpr std::int64_t kSmallestQuantized = 4096;
  /// `block`: elements that share a scale; 256 since bitsandbytes 0.44, 2048 before.
  explicit Adam8Bit(std::int64_t block) : block_(block) {}
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override;

 private:
  std::int64_t block_;
  eager::Tensor maps_[2];  ///< the 256 values a byte may mean, for each state
};

}  // namespace ridgeline::optimizers

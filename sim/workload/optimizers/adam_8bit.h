// AdamW with states in eight bits (bitsandbytes): one kernel a tensor; each block of elements shares a fp32 scale.
#pragma once

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

class Adam8Bit final : public Optimizer {
 public:
  /// Smaller tensors keep fp32 states.
  static constexpr std::int64_t kSmallestQuantized = 4096;
  /// Smaller ones stay on the device where states are paged.
  static constexpr std::int64_t kSmallestPaged = 100'000;
  /// `block`: elements that share a scale; 256 since bitsandbytes 0.44, 2048 before. `paged`: states lie in unified
  /// memory, whose pages stay on the device while it has room.
  Adam8Bit(std::int64_t block, bool paged) : block_(block), paged_(paged) {}
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override;

 private:
  std::int64_t block_;
  bool paged_;
  eager::Tensor maps_[2];  ///< the 256 values a byte may mean, for each state
};

}  // namespace ridgeline::optimizers

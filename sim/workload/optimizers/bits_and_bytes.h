// Optimizers of bitsandbytes: one kernel a tensor; states in eight bits share a fp32 scale a block of elements.
#pragma once

#include <array>

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

/// Numbers that a run of these optimizers takes.
struct BlockStates {
  int states = 2;            ///< AdamW has two, Lion one
  bool quantized = true;     ///< eight bits; false: fp32 for every tensor
  std::int64_t block = 256;  ///< elements that share a scale; 256 since bitsandbytes 0.44, 2048 before
  bool paged = false;        ///< states lie in unified memory, whose pages stay on the device while it has room
};

class BitsAndBytes final : public Optimizer {
 public:
  /// Smaller tensors keep fp32 states.
  static constexpr std::int64_t kSmallestQuantized = 4096;
  /// Smaller ones stay on the device where states are paged.
  static constexpr std::int64_t kSmallestPaged = 100'000;
  explicit BitsAndBytes(const BlockStates& how) : how_(how) {}
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override;

 private:
  BlockStates how_;
  std::array<eager::Tensor, 2> maps_;  ///< the 256 values a byte may mean, for each state
};

}  // namespace ridgeline::optimizers

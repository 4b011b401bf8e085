// An optimizer in the host's memory beside one GPU: torchao's CPUOffloadOptimizer (torchao/optim/cpu_offload.py).
//
// Each gradient is copied to pinned memory as soon as it has arrived, on a stream of its own, where the host's AdamW of
// that parameter waits for it after the backward pass; the new weight goes back on the same stream. Parameters of fewer
// than 4,096 elements stay on the device.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/workload/optimizers/gradient_hooks.h"

namespace ridgeline::optimizers {

class OnHost final : public GradientHooks {
 public:
  /// `waits`: whether a compiled graph runs, behind which hooks are called.
  OnHost(eager::Eager& eager, Optimizer& optimizer, eager::Parameters& parameters, OptimizerDescription how,
         std::function<bool()> waits);
  /// Copies what waited for the end of a graph.
  void catch_up() override;
  void step() override;
  /// The parameter has its states in the host's memory.
  [[nodiscard]] static bool holds(const eager::Parameter& parameter);

 private:
  struct Arrived {
    eager::Parameter* parameter;
    std::uint32_t event;  ///< behind the copy of its gradient
  };
  void take(eager::Parameter& parameter);

  eager::Eager& eager_;
  Optimizer& optimizer_;
  eager::Parameters& parameters_;
  OptimizerDescription how_;
  std::function<bool()> waits_;
  std::uint8_t stream_;
  std::vector<Arrived> queue_;
  std::vector<eager::Parameter*> waiting_;
};

}  // namespace ridgeline::optimizers

// torch.amp.GradScaler: keeps fp16 gradients in range and skips steps that overflowed.
#pragma once

#include "sim/workload/eager/parameter.h"

namespace ridgeline::optimizers {

class GradientScaler {
 public:
  /// loss times the scale.
  eager::Tensor scale(eager::Eager& eager, const eager::Tensor& loss);
  /// Divides gradients by the scale and looks for overflow, in one pass.
  void unscale(eager::Eager& eager, eager::Parameters& parameters);
  [[nodiscard]] bool unscaled() const { return found_overflow_.defined(); }
  /// Before an optimizer of kernels over lists or single tensors: the host waits for the overflow flag.
  void check(eager::Eager& eager) const;
  /// For a fused optimizer, whose kernel reads the flag itself: flags of all devices, added up.
  eager::Tensor overflow_flag(eager::Eager& eager) const;
  void update(eager::Eager& eager);

 private:
  eager::Tensor scale_, growth_;
  eager::Tensor found_overflow_;
};

}  // namespace ridgeline::optimizers

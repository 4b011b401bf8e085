// Copies in fp32 of parameters that are trained in 16 bits (apex amp O2, DeepSpeed's fp16): the optimizer works on the
// copies, with gradients brought to fp32 and divided by the loss scale, and the parameters take the rounded result.
#pragma once

#include "sim/workload/eager/parameter.h"

namespace ridgeline::optimizers {

class MasterWeights {
 public:
  /// Makes the copies, which count as optimizer state.
  MasterWeights(eager::Eager& eager, const eager::Parameters& parameters);
  /// 16-bit gradients into fresh fp32 ones of the copies; the host waits to hear whether any overflowed.
  void take_gradients(eager::Eager& eager, const eager::Parameters& parameters);
  /// Copies into parameters; the copies' gradients go.
  void return_values(eager::Eager& eager, const eager::Parameters& parameters);

  eager::Parameters copies;

 private:
  eager::Tensor overflow_;
};

}  // namespace ridgeline::optimizers

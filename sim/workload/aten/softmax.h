// Softmax and its logarithm over the last dimension: both save their result.
#pragma once

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// `result_type` may be fp32 for a 16-bit input: one kernel reads the one and writes the other. The backward pass first
/// multiplies gradient and result into a temporary.
Tensor softmax(Eager& eager, const Tensor& x, DType result_type);
Tensor log_softmax(Eager& eager, const Tensor& x);

}  // namespace ridgeline::eager::aten

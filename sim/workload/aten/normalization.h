// Layer normalisation over the last dimension, and dropout.
#pragma once

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// Saves input, weight and the fp32 mean and reciprocal deviation of each row. `bias` may be null.
Tensor layer_norm(Eager& eager, const Tensor& x, const Tensor& weight, const Tensor* bias);
/// Without weight and bias.
Tensor layer_norm(Eager& eager, const Tensor& x);
/// Writes a one-byte mask beside the result, which is all it saves.
Tensor dropout(Eager& eager, const Tensor& x);

}  // namespace ridgeline::eager::aten

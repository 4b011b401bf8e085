// Linear layers whose products run in 8-bit floating point with scales that are found anew for each use (torchao's
// Float8Linear, with torch._scaled_mm).
#pragma once

#include "sim/workload/eager/tensor.h"
#include "sim/workload/training.h"

namespace ridgeline::eager::aten {

/// x·Wᵀ. Saves x and the weight as they are: both are cast again for the products of the backward pass.
Tensor scaled_linear(Eager& eager, const Tensor& x, const Tensor& weight, ScaledLinear scales);
/// x·Wᵀ (+ bias) of a weight that is kept in 8 bits with a scale a row; rows of x are cast, and no gradient is made.
Tensor row_scaled_linear(Eager& eager, const Tensor& x, const Tensor& values, const Tensor& scales, const Tensor* bias);

}  // namespace ridgeline::eager::aten

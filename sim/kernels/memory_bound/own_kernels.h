// Element-wise functions of PyTorch that do not run on TensorIterator's kernels.
#pragma once

#include "sim/hardware/chip_shape.h"
#include "sim/kernels/lowering.h"

namespace ridgeline {

/// True of functions with a kernel of their own: by few indices, added atomically, triangles, random numbers, places of
/// what is not zero.
bool has_own_kernel(PointwiseFunction function);
LoweredOp lower_own_kernel(const Pointwise& op, const ChipShape& chip);

}  // namespace ridgeline

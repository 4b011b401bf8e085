// Kernels of the bitsandbytes library.
#pragma once

#include "sim/kernels/lowering.h"

namespace ridgeline {

bool of_bits_and_bytes(PointwiseFunction function);
LoweredOp lower_bits_and_bytes(const Pointwise& op);

}  // namespace ridgeline

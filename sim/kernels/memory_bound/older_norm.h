// Layer normalisation as PyTorch ran it before December 2021.
#pragma once

#include "sim/hardware/chip_shape.h"
#include "sim/hardware/software.h"
#include "sim/kernels/lowering.h"
#include "sim/workload/op.h"

namespace ridgeline {

/// The backward pass of a layer norm in four kernels, each an element a load.
LoweredOp lower_older_norm_backward(const Norm& op, const ChipShape& chip, const Software& software);

}  // namespace ridgeline

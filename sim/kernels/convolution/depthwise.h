// Convolutions whose channels have filters of their own: PyTorch's kernels for images in NCHW.
#pragma once

#include "sim/kernels/lowering.h"

namespace ridgeline {

/// conv_depthwise2d: one kernel for outputs, one for each gradient, a thread a result (weights: a block a tap).
LoweredOp lower_pytorch_depthwise(const Convolution& op);

}  // namespace ridgeline

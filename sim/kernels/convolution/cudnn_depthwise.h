// Convolutions whose channels have filters of their own: cuDNN's kernels, which take images with channels last and some
// of fp16 in NCHW.
#pragma once

#include "sim/hardware/chip_shape.h"
#include "sim/kernels/lowering.h"

namespace ridgeline {

/// One kernel for outputs, one for each gradient; sums of weights have a second one.
LoweredOp lower_cudnn_depthwise(const Convolution& op, const ChipShape& chip);

}  // namespace ridgeline

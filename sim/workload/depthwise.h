// Library that runs a depthwise convolution: PyTorch's own kernels or cuDNN's.
#pragma once

#include "sim/workload/op.h"

namespace ridgeline {

/// Whether PyTorch runs conv_depthwise2d, which adds the bias itself: images in NCHW, unless they are fp16 with a
/// filter and a stride that PyTorch's table gives to cuDNN (ConvParams::use_cudnn_depthwise, PyTorch 2.0 and later).
bool runs_pytorch_depthwise(const Convolution& op);

}  // namespace ridgeline

// Kernels that bring an image or a filter into the order or the precision in which a convolution wants it.
#pragma once

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

/// `count` times `channels` planes of `pixels` values.
struct ImageTensor {
  std::int64_t count = 1, channels = 1, pixels = 1;
  [[nodiscard]] double elements() const {
    return static_cast<double>(count) * static_cast<double>(channels) * static_cast<double>(pixels);
  }
};

/// NCHW to NHWC or back, in blocks of 32 x 32 values of an image's pixels and channels.
KernelLaunch turned(int operand, const ImageTensor& tensor, DType type);

/// An image times zero, ahead of kernels that add to it.
KernelLaunch cleared(const ImageTensor& tensor, DType type);

/// Channels last copied to rows of whole loads, or from them, by a block for each half of an SM's threads; `bytes`: of
/// the filled tensor.
KernelLaunch padded_channels(int operand, const ImageTensor& tensor, DType type, double bytes, const Gpu& gpu);

/// fp32 to the nearest tf32, ahead of kernels that do not round themselves.
KernelLaunch rounded(int operand, const ImageTensor& tensor, DType type);

}  // namespace ridgeline

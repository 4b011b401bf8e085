// Convolutions of images and signals.
#pragma once

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// Pixels [batch, channels, side, side] by a kernel [out, channels, patch, patch] whose stride is its side: [batch,
/// out, side / patch, side / patch]. `bias` may be undefined. Saves pixels and kernel.
Tensor patches(Eager& eager, const Tensor& pixels, const Tensor& kernel, const Tensor& bias, std::int64_t patch);
/// x [batch, channels, frames] by a kernel [out, channels, width]: [batch, out, frames / stride].
Tensor convolution_over_time(Eager& eager, const Tensor& x, const Tensor& kernel, const Tensor& bias,
                             std::int64_t stride);

struct ConvolutionSteps {
  std::int64_t stride = 1, padding = 0, groups = 1;
};
/// Of one side of `size` by a kernel of `width`; below 1 where nothing is left.
constexpr std::int64_t convolved_side(std::int64_t size, std::int64_t width, const ConvolutionSteps& steps) {
  return (size + 2 * steps.padding - width) / steps.stride + 1;
}
/// x [batch, channels, height, width] or [batch, channels, frames] by a kernel [out, channels / groups, …] that takes
/// equal steps along all sides. Where x lies with its channels last, the result does too.
Tensor convolution(Eager& eager, const Tensor& x, const Tensor& kernel, const Tensor& bias,
                   const ConvolutionSteps& steps);

}  // namespace ridgeline::eager::aten

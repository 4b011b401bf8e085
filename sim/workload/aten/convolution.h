// Convolutions that embed images and spectrograms.
#pragma once

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// Pixels [batch, channels, side, side] by a kernel [out, channels, patch, patch] whose stride is its side: [batch,
/// out, side / patch, side / patch]. `bias` may be undefined. Saves pixels and kernel.
Tensor patches(Eager& eager, const Tensor& pixels, const Tensor& kernel, const Tensor& bias, std::int64_t patch);
/// x [batch, channels, frames] by a kernel [out, channels, width]: [batch, out, frames / stride].
Tensor convolution_over_time(Eager& eager, const Tensor& x, const Tensor& kernel, const Tensor& bias,
                             std::int64_t stride);

}  // namespace ridgeline::eager::aten

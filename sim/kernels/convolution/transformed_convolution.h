// fp32 gradients as products of transformed tensors: fewer multiplications for more bytes.
//
// Winograd's F(4 x 4) for weight gradients, (q + 3)² products of channels by filters over blocks of 16 pixels; Fourier
// transforms of overlapping squares of 32 x 32 pixels for input gradients, 544 complex products for each square. Read
// from profiles of cuDNN on an H200.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/kernels/convolution/convolution_kernel.h"

namespace ridgeline {

struct TransformedConvolution {
  std::vector<ConvolutionKernel> kernels;
  std::string_view name;
  double image_growth = 1, output_growth = 1,
         filter_growth = 1;       ///< transformed values of one of an input, an output and a filter
  double passes = 1;              ///< of a transform over its bytes
  double image_launch_bytes = 0;  ///< what the launches of an image's transforms cost besides, in bytes of a copy
  bool preferred = false;         ///< taken by the library whatever its time
};

/// None where no such form is known for the problem.
std::optional<TransformedConvolution> transformed_convolution(const ConvolutionProblem& problem, const Gpu& gpu);

/// The transform of a filter's or images' tensor of `bytes` that becomes `growth` times as large, or its inverse.
KernelLaunch transform_of(const TransformedConvolution& form, int operand, DType type, double bytes, bool filter,
                          double growth);

}  // namespace ridgeline

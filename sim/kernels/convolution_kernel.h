// The kernel that convolves: role, family, tile and split, chosen by time among those that cuDNN has.
#pragma once

#include <optional>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

/// One direction of a convolution of square images; channels and filters as the kernel sees them (padded to whole
/// loads).
struct ConvolutionProblem {
  Gathering::Role role = Gathering::Role::forward;  ///< forward, input_gradient or weight_gradient
  DType type = DType::fp32;
  bool channels_last = false;
  std::int64_t batch = 1, channels = 1, size = 1, filters = 1, out_size = 1, kernel = 1, stride = 1;
  [[nodiscard]] std::int64_t taps() const { return kernel * kernel; }
};

struct ConvolutionKernel {
  GemmWork work{};
  int threads = 128, registers = 128;
  std::int64_t shared_bytes = 0;
  double blocks = 1;
  double seconds = 0;  ///< with cold operands
};

/// Distinct bytes that the kernel moves.
struct ConvolutionBytes {
  double read = 0, written = 0;
};

/// Fastest kernel of each family on tensor cores: none where the GPU has none for the type, or none that fits an SM.
std::vector<ConvolutionKernel> tensor_convolutions(const ConvolutionProblem& problem, const ConvolutionBytes& bytes,
                                                   const Gpu& gpu);
/// Fastest kernel on the CUDA cores, for images in NCHW. Throws std::invalid_argument where none fits an SM.
ConvolutionKernel cuda_core_convolution(const ConvolutionProblem& problem, const ConvolutionBytes& bytes,
                                        const Gpu& gpu);

/// Fastest kernel of a batch of plain products (n x k by k x m) on the CUDA cores; none where none fits an SM.
std::optional<ConvolutionKernel> plain_convolution_product(std::int64_t batch, std::int64_t m, std::int64_t n,
                                                           std::int64_t k, const Gpu& gpu);

/// Its launch without operands and arithmetic.
KernelLaunch launch_of(const ConvolutionKernel& kernel, const Gpu& gpu);

}  // namespace ridgeline

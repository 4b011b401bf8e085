// Kernels that convolve: role, family, tile and split, of those that cuDNN has.
#pragma once

#include <string>
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
  double seconds = 0;  ///< with cold operands, at full clock
  double least = 0;    ///< whatever of them the L2 holds
};

/// Distinct bytes that the kernel moves.
struct ConvolutionBytes {
  double read = 0, written = 0;
};

/// Kernels on tensor cores, tile by tile and split by split: none where the GPU has none for the type, or none that
/// fits an SM. What a chip has, a better one has too.
std::vector<ConvolutionKernel> tensor_convolutions(const ConvolutionProblem& problem, const ConvolutionBytes& bytes,
                                                   const Gpu& gpu);
/// Kernels on the CUDA cores, for images in NCHW. Throws std::invalid_argument where none fits an SM.
std::vector<ConvolutionKernel> cuda_core_convolutions(const ConvolutionProblem& problem, const ConvolutionBytes& bytes,
                                                      const Gpu& gpu);

/// Kernels of a batch of plain products (n x k by k x m) on the CUDA cores; none where none fits an SM.
std::vector<ConvolutionKernel> plain_convolution_products(std::int64_t batch, std::int64_t m, std::int64_t n,
                                                          std::int64_t k, const Gpu& gpu);

std::string name_of_convolution(const GemmWork& work);
/// Its launch without name, operands and arithmetic.
KernelLaunch launch_of(const ConvolutionKernel& kernel, const Gpu& gpu);

}  // namespace ridgeline

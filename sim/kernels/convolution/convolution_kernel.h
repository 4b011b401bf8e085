// Kernels that convolve: role, family, tile and split, of those that cuDNN has.
#pragma once

#include <string>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

/// One direction of a convolution; channels and filters as the kernel sees them (padded to whole loads).
struct ConvolutionProblem {
  Gathering::Role role = Gathering::Role::forward;  ///< forward, input_gradient or weight_gradient
  DType type = DType::fp32;
  bool channels_last = false;
  std::int64_t batch = 1, channels = 1, size = 1, filters = 1, out_size = 1, kernel = 1, stride = 1;
  std::int64_t width = 0, out_width = 0, kernel_width = 0, stride_width = 0;  ///< 0: as the heights
  std::int64_t apart = 1;  ///< products of groups that have tiles of their own
  [[nodiscard]] std::int64_t columns() const { return width > 0 ? width : size; }
  [[nodiscard]] std::int64_t out_columns() const { return out_width > 0 ? out_width : out_size; }
  [[nodiscard]] std::int64_t kernel_columns() const { return kernel_width > 0 ? kernel_width : kernel; }
  [[nodiscard]] std::int64_t stride_columns() const { return stride_width > 0 ? stride_width : stride; }
  [[nodiscard]] std::int64_t taps() const { return kernel * kernel_columns(); }
  [[nodiscard]] std::int64_t pixels() const { return size * columns(); }
  [[nodiscard]] std::int64_t out_pixels() const { return out_size * out_columns(); }
  /// Classes of input pixels that meet different taps.
  [[nodiscard]] std::int64_t phases() const { return stride * stride_columns(); }
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

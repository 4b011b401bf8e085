// Operations on images and signals: convolutions, batch norms, pooling, interpolation, padding, sampling.
#pragma once

#include <cstdint>

#include "sim/workload/dtype.h"
#include "sim/workload/library_kernel.h"

namespace ridgeline {

/// What a recording names of one direction of a convolution: the instructions of its kernel, and whether it multiplied
/// transformed tensors (Winograd, Fourier). Its tile is left to the choice: bound to it, convolutions come out worse.
struct RecordedConvolution {
  LibraryKernel::Instructions instructions = LibraryKernel::Instructions::none;
  bool transformed = false;
  [[nodiscard]] bool known() const { return transformed || instructions != LibraryKernel::Instructions::none; }
  bool operator==(const RecordedConvolution&) const = default;
};

/// Gradients that a backward pass of a convolution computes.
enum class ConvolutionGradients : std::uint8_t { both, input, weight };

/// Images [batch, in_channels, size, columns()], filters [out_channels, in_channels / groups, kernel, kernel_columns()]
/// and outputs [batch, out_channels, out_rows(), out_columns()]. A transposed convolution reads outputs and computes
/// images, as an input gradient does.
struct Convolution {
  bool backward = false, channels_last = false, transposed = false;
  DType type = DType::fp32;
  std::int64_t batch = 0, in_channels = 0, size = 0, out_channels = 0, kernel = 1, stride = 1;
  RecordedConvolution ran{}, ran_weights{};  ///< forward or input gradient; weight gradient
  std::int64_t groups = 1, width = 0, kernel_width = 0, stride_width = 0;  ///< widths of 0 equal the heights
  std::int64_t out_size = 0, out_width = 0;  ///< 0: outputs of a convolution padded by half a kernel
  ConvolutionGradients gradients = ConvolutionGradients::both;
  bool operator==(const Convolution&) const = default;

  [[nodiscard]] std::int64_t columns() const { return width > 0 ? width : size; }
  [[nodiscard]] std::int64_t kernel_columns() const { return kernel_width > 0 ? kernel_width : kernel; }
  [[nodiscard]] std::int64_t stride_columns() const { return stride_width > 0 ? stride_width : stride; }
  [[nodiscard]] std::int64_t out_rows() const { return out_size > 0 ? out_size : padded_out(size, kernel, stride); }
  [[nodiscard]] std::int64_t out_columns() const {
    if (out_width > 0) return out_width;
    const bool square = width == 0 && kernel_width == 0 && stride_width == 0;
    return out_size > 0 && square ? out_size : padded_out(columns(), kernel_columns(), stride_columns());
  }
  [[nodiscard]] std::int64_t pixels() const { return size * columns(); }
  [[nodiscard]] std::int64_t out_pixels() const { return out_rows() * out_columns(); }
  [[nodiscard]] std::int64_t taps() const { return kernel * kernel_columns(); }
  /// Every channel has filters of its own.
  [[nodiscard]] bool depthwise() const { return groups > 1 && groups == in_channels && !transposed; }

 private:
  static std::int64_t padded_out(std::int64_t side, std::int64_t window, std::int64_t step) {
    return (side + 2 * (window / 2) - window) / step + 1;
  }
};
enum class ImageFunction : std::uint8_t { batch_norm, relu, max_pool2d, upsample_nearest2d, avg_pool2d };
/// Images [batch, channels, size, width]; pooling gives images of out_size x out_width by windows of window x window.
struct ImageOp {
  ImageFunction function = ImageFunction::relu;
  bool backward = false, channels_last = false;
  DType type = DType::fp32;
  std::int64_t batch = 0, channels = 0, size = 0;
  std::int64_t width = 0;                                            ///< 0: as `size`
  std::int64_t window = 0, stride = 0, out_size = 0, out_width = 0;  ///< of pooling; 0: 2 x 2 pixels become one
  bool evaluation = false;                                           ///< batch norm with running statistics
  bool operator==(const ImageOp&) const = default;

  [[nodiscard]] std::int64_t columns() const { return width > 0 ? width : size; }
  [[nodiscard]] std::int64_t pixels() const { return size * columns(); }
  [[nodiscard]] std::int64_t out_rows() const { return out_size > 0 ? out_size : size / 2; }
  [[nodiscard]] std::int64_t out_columns() const {
    return out_width > 0 ? out_width : out_size > 0 ? out_size : columns() / 2;
  }
  [[nodiscard]] std::int64_t taps() const { return window > 0 ? window * window : 4; }
};

enum class ResamplingFunction : std::uint8_t {
  nearest,
  linear,
  bilinear,
  bicubic,
  reflection_pad,
  replication_pad,
  grid_nearest,   ///< grid_sample at the nearest pixel …
  grid_bilinear,  ///< … and between four
  unfold,         ///< im2col: windows as columns
  fold            ///< col2im: columns added up as windows
};
/// Pixels made of others at computed places. `planes` images of one channel have `inputs` pixels in the forward pass's
/// operand and `outputs` in its result; windows of `taps` pixels are unfolded.
struct Resampling {
  ResamplingFunction function = ResamplingFunction::bilinear;
  bool backward = false, channels_last = false;
  DType type = DType::fp32;
  std::int64_t batch = 0, channels = 0, inputs = 0, outputs = 0, taps = 1;
  [[nodiscard]] std::int64_t planes() const { return batch * channels; }
  bool operator==(const Resampling&) const = default;
};

}  // namespace ridgeline

#include "sim/kernels/convolution/transformed_convolution.h"

#include <algorithm>

#include "sim/kernels/convolution/convolution_tiles.h"
#include "sim/units/ceil_div.h"

namespace ridgeline {
namespace {

/// Side of Winograd's block of pixels, and of a Fourier transform; complex values that a real one of 32 x 32 has.
constexpr std::int64_t kBlockSide = 4, kFourierSide = 32, kFrequencies = 32 * 17;
/// Multiplications of a complex one, and values.
constexpr std::int64_t kComplexProducts = 4, kComplexValues = 2;
/// A Fourier transform moves its bytes at half of a copy's rate, and has a launch for every square of pixels of all
/// images, of 11 us at least: as long as a copy of so many bytes (15 gradients of an H200).
constexpr double kFourierPasses = 2.0, kFourierLaunchBytes = 25e6;
/// Where cuDNN takes these forms: Winograd's where it is faster; Fourier's always while the filters' transforms are
/// small (80 MB), and of larger ones where it is faster for many small images (profiled 3 x 3 gradients of an H200).
constexpr std::int64_t kFewestChannels = 24, kFewestInputChannels = 32, kFewestPixels = 16;
constexpr std::int64_t kSmallFilters = 18384, kManyImages = 32, kMostPixels = 64;

double ratio(std::int64_t a, std::int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

}  // namespace

std::optional<TransformedConvolution> transformed_convolution(const ConvolutionProblem& p, const Gpu& gpu) {
  if (p.phases() != 1 || p.kernel != 3 || p.kernel_columns() != 3 || p.type != DType::fp32) return std::nullopt;
  std::int64_t batch = 1, m = 1, n = p.channels, k = 1;
  TransformedConvolution form;
  const std::int64_t pixels = p.pixels(), outputs = p.out_pixels();
  if (p.role == Gathering::Role::weight_gradient && std::min(p.channels, p.filters) >= kFewestChannels) {
    const std::int64_t products = (p.kernel + kBlockSide - 1) * (p.kernel_columns() + kBlockSide - 1),
                       blocks = ceil_div(p.out_size, kBlockSide) * ceil_div(p.out_columns(), kBlockSide);
    batch = products;
    m = p.filters;
    k = p.batch * blocks;
    form.name = "winograd_nonfused";
    form.image_growth = ratio(blocks * products, pixels);
    form.output_growth = ratio(blocks * products, outputs);
    form.filter_growth = ratio(products, p.taps());
  } else if (is_before_ampere(gpu.architecture)) {
    if (p.role != Gathering::Role::forward && p.role != Gathering::Role::input_gradient) return std::nullopt;
    if (std::min(p.channels, p.filters) < kFewestChannels) return std::nullopt;
    const std::int64_t products = (p.kernel + kBlockSide - 1) * (p.kernel_columns() + kBlockSide - 1),
                       blocks = ceil_div(p.out_size, kBlockSide) * ceil_div(p.out_columns(), kBlockSide);
    const bool forward = p.role == Gathering::Role::forward;
    batch = products;
    m = p.batch * blocks;
    n = forward ? p.filters : p.channels;
    k = forward ? p.channels : p.filters;
    form.name = "winograd_nonfused";
    form.image_growth = form.output_growth = ratio(blocks * products, outputs);
    form.filter_growth = ratio(products, p.taps());
  } else if (p.role == Gathering::Role::input_gradient && p.channels >= kFewestInputChannels &&
             p.filters >= kFewestChannels && std::min(p.size, p.columns()) >= kFewestPixels) {
    form.preferred = p.channels * p.filters <= kSmallFilters;
    if (!form.preferred && (p.batch < kManyImages || std::max(p.size, p.columns()) > kMostPixels)) return std::nullopt;
    const std::int64_t step = kFourierSide - p.kernel + 1,
                       squares = ceil_div(p.size, step) * ceil_div(p.columns(), step);
    batch = kFrequencies * squares;
    m = p.batch;
    k = kComplexProducts * p.filters;
    form.name = "fft2d_32x32";
    form.image_growth = ratio(kComplexValues * kFrequencies * squares, pixels);
    form.output_growth = ratio(kComplexValues * kFrequencies * squares, outputs);
    form.filter_growth = ratio(kComplexValues * kFrequencies, p.taps());
    form.passes = kFourierPasses;
    form.image_launch_bytes = kFourierLaunchBytes * static_cast<double>(squares);
  } else {
    return std::nullopt;
  }
  form.kernels = plain_convolution_products(batch, m, n, k, gpu);
  if (form.kernels.empty()) return std::nullopt;
  return form;
}

KernelLaunch transform_of(const TransformedConvolution& form, int operand, DType type, double bytes, bool filter,
                          double growth) {
  KernelLaunch launch;
  launch.name = form.name;
  launch.time_class = TimeClass::tensor_contraction;
  launch.type = type;
  launch.reads = {{.operand = operand, .bytes = bytes}};
  launch.writes = {{.operand = Access::kTemporary, .bytes = bytes * growth}};
  launch.work =
      FixedWork{.what = FixedWork::What::memcpy_device,
                .bytes = 0.5 * bytes * (1.0 + growth) * form.passes + (filter ? 0.0 : form.image_launch_bytes)};
  return launch;
}

}  // namespace ridgeline

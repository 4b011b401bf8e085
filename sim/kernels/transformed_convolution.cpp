#include "sim/kernels/transformed_convolution.h"

#include <algorithm>

#include "sim/units/ceil_div.h"

namespace ridgeline {
namespace {

/// Side of Winograd's block of pixels, and of a Fourier transform; complex values that a real one of 32 x 32 has.
constexpr std::int64_t kBlockSide = 4, kFourierSide = 32, kFrequencies = 32 * 17;
/// Multiplications of a complex one, and values.
constexpr std::int64_t kComplexProducts = 4, kComplexValues = 2;
/// A Fourier transform moves its bytes at a third of a copy's rate (12 of an H200, 1.2 to 1.6 TB/s).
constexpr double kFourierPasses = 3.0;

/// Where cuDNN takes these forms (right for 45 of 52 profiled choices).
constexpr std::int64_t kFewestChannels = 24, kFewestImages = 16, kMostPixels = 64;

double ratio(std::int64_t a, std::int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

}  // namespace

std::optional<TransformedConvolution> transformed_convolution(const ConvolutionProblem& p, const Gpu& gpu) {
  if (p.stride != 1 || p.kernel != 3 || p.type != DType::fp32) return std::nullopt;
  std::int64_t batch = 1, m = 1, k = 1;
  TransformedConvolution form;
  const std::int64_t pixels = p.size * p.size, outputs = p.out_size * p.out_size;
  if (p.role == Gathering::Role::weight_gradient && std::min(p.channels, p.filters) >= kFewestChannels) {
    const std::int64_t products = (p.kernel + kBlockSide - 1) * (p.kernel + kBlockSide - 1),
                       blocks = ceil_div(p.out_size, kBlockSide) * ceil_div(p.out_size, kBlockSide);
    batch = products;
    m = p.filters;
    k = p.batch * blocks;
    form.name = "winograd_nonfused";
    form.image_growth = ratio(blocks * products, pixels);
    form.output_growth = ratio(blocks * products, outputs);
    form.filter_growth = ratio(products, p.taps());
  } else if (p.role == Gathering::Role::input_gradient && p.batch >= kFewestImages && p.size <= kMostPixels) {
    const std::int64_t side = ceil_div(p.size, kFourierSide - p.kernel + 1), squares = side * side;
    batch = kFrequencies;
    m = p.batch * squares;
    k = kComplexProducts * p.filters;
    form.name = "fft2d_32x32";
    form.image_growth = ratio(kComplexValues * kFrequencies * squares, pixels);
    form.output_growth = ratio(kComplexValues * kFrequencies * squares, outputs);
    form.filter_growth = ratio(kComplexValues * kFrequencies, p.taps());
    form.passes = kFourierPasses;
  } else {
    return std::nullopt;
  }
  const auto kernel = plain_convolution_product(batch, m, p.channels, k, gpu);
  if (!kernel) return std::nullopt;
  form.kernel = *kernel;
  return form;
}

KernelLaunch transform_of(const TransformedConvolution& form, int operand, DType type, double bytes, double growth) {
  KernelLaunch launch;
  launch.name = form.name;
  launch.time_class = TimeClass::tensor_contraction;
  launch.type = type;
  launch.reads = {{.operand = operand, .bytes = bytes}};
  launch.writes = {{.operand = Access::kTemporary, .bytes = bytes * growth}};
  launch.work = FixedWork{.what = FixedWork::What::memcpy_device, .bytes = 0.5 * bytes * (1.0 + growth) * form.passes};
  return launch;
}

}  // namespace ridgeline

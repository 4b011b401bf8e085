// Kernels of convolutions against docs/model/convolutions.md: sides, taps and steps of each direction, which kernels
// the tensor cores and the CUDA cores have, how many splits are tried, over random convolutions.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/convolution/convolution_kernel.h"
#include "sim/kernels/convolution/convolution_tiles.h"
#include "sim/timing/convolution/convolution_law.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;
using Role = Gathering::Role;
using Family = GemmWork::Family;

struct ConvolutionCase {
  ConvolutionProblem p;
  ConvolutionBytes bytes;
};

ConvolutionCase drawn_convolution_case(Draws& draws) {
  ConvolutionCase c;
  ConvolutionProblem& p = c.p;
  p.role = std::array{Role::forward, Role::input_gradient, Role::weight_gradient}[draws.index(3)];
  p.type = std::array{DType::bf16, DType::fp16, DType::tf32}[draws.index(3)];
  p.channels_last = draws.index(2) == 0;
  p.kernel = std::array<std::int64_t, 5>{1, 3, 5, 7, 2}[draws.index(5)];
  p.stride = 1 + static_cast<std::int64_t>(draws.index(2));
  p.batch = std::llround(draws.between(1, 64));
  p.size = std::max<std::int64_t>(p.kernel, std::llround(draws.between(4, 100)));
  p.out_size = (p.size + p.kernel / 2 * 2 - p.kernel) / p.stride + 1;
  p.channels = std::llround(draws.between(1, 600)), p.filters = std::llround(draws.between(1, 600));
  const double e = static_cast<double>(bytes_of(p.type));
  const double image = e * static_cast<double>(p.batch * p.channels * p.size * p.size),
               out = e * static_cast<double>(p.batch * p.filters * p.out_size * p.out_size),
               weights = e * static_cast<double>(p.channels * p.filters * p.taps());
  if (p.role == Role::forward) c.bytes = {image + weights, out};
  else if (p.role == Role::input_gradient) c.bytes = {out + weights, image};
  else c.bytes = {image + out, weights};
  return c;
}

std::string text_of(std::uint64_t seed, const ConvolutionProblem& p) {
  return "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": role " + std::to_string(static_cast<int>(p.role)) + ", " +
         std::to_string(p.batch) + " x " + std::to_string(p.channels) + " x " + std::to_string(p.size) + " to " +
         std::to_string(p.filters) + ", kernel " + std::to_string(p.kernel) + ", stride " + std::to_string(p.stride);
}

/// m, n, k of the product, and what a step begins anew with: taps, their channels, classes of pixels.
using Product = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
Product stated_product(const ConvolutionProblem& p) {
  const std::int64_t outputs = p.batch * p.out_size * p.out_size;
  if (p.role == Role::forward) return {outputs, p.filters, p.taps() * p.channels, p.channels, 1};
  if (p.role == Role::weight_gradient) return {p.filters, p.taps() * p.channels, outputs, 1, 1};
  const std::int64_t classes = p.stride * p.stride;
  return {p.batch * p.size * p.size, p.channels, std::max<std::int64_t>(1, p.taps() * p.filters / classes), p.filters,
          classes};
}
Product product_in(const GemmWork& w) { return {w.m, w.n, w.k, w.gathering.channels, w.gathering.phases}; }

void expect_timed(const ConvolutionCase& c, const ConvolutionKernel& kernel, const Gpu& gpu) {
  const ConvolutionTime time = convolution_law(kernel.work, gpu, c.bytes.read, 0.0, c.bytes.written);
  EXPECT_DOUBLE_EQ(kernel.seconds, time.total);
  EXPECT_DOUBLE_EQ(kernel.least, time.fixed + time.compute);
  EXPECT_DOUBLE_EQ(kernel.blocks, time.tiles * kernel.work.split_k);
  const double all = static_cast<double>(bytes_of(kernel.work.type)) *
                     static_cast<double>((kernel.work.m + kernel.work.n) * kernel.work.k);
  if (kernel.work.gathering.role == c.p.role && c.p.role != Role::input_gradient) {
    EXPECT_NEAR(kernel.work.distinct_reads, std::min(1.0, c.bytes.read / all), 1e-9);
  }
  const KernelLaunch launch = launch_of(kernel, gpu);
  const bool wgmma = kernel.work.family == Family::wgmma, cuda = kernel.work.family == Family::simt;
  EXPECT_EQ(launch.blocks(), wgmma ? std::min<double>(gpu.sm.count, kernel.blocks) : kernel.blocks);
  EXPECT_EQ(launch.pipe, wgmma ? Pipe::tensor_wgmma : cuda ? Pipe::fp32 : Pipe::tensor_mma);
  EXPECT_EQ(launch.type, cuda ? DType::fp32 : kernel.work.type);
  EXPECT_EQ(launch.threads_per_block, kernel.threads);
  EXPECT_EQ(launch.time_class, TimeClass::tensor_contraction);
}

TEST(StatedConvolutionKernels, of_tensor_cores_split_sums_until_tiles_and_splits_fill_the_sms) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    const ConvolutionCase c = drawn_convolution_case(draws);
    const ConvolutionProblem& p = c.p;
    SCOPED_TRACE(text_of(seed, p));
    const bool weights = p.role == Role::weight_gradient, large = p.taps() > 25;
    std::set<std::pair<Family, std::tuple<int, int, int>>> tiles;
    for (const ConvolutionKernel& kernel : tensor_convolutions(p, c.bytes, gpu)) {
      const GemmWork& work = kernel.work;
      const bool wgmma = work.family == Family::wgmma;
      tiles.insert({work.family, {work.tile_m, work.tile_n, work.tile_k}});
      if (!weights) {
        EXPECT_EQ(product_in(work), stated_product(p));
      } else {
        EXPECT_EQ(std::tuple(work.m, work.n, work.k),
                  std::tuple(p.filters, p.taps() * p.channels, p.batch * p.out_size * p.out_size));
      }
      EXPECT_EQ(work.gathering.role, p.role);
      EXPECT_EQ(work.gathering.taps, p.taps());
      EXPECT_EQ(work.layout, static_cast<int>(weights ? Layout::tn : Layout::nt));
      // Address tables end at 25 taps; strided input gradients compute each address too.
      EXPECT_EQ(work.gathering.indexed, wgmma && p.role == Role::input_gradient && (large || p.stride > 1));
      if (large && p.role != Role::input_gradient) {
        EXPECT_FALSE(wgmma);
      }
      if (work.split_k > 1) {
        EXPECT_TRUE(wgmma || weights);
        EXPECT_LE(kernel.blocks, static_cast<double>(gpu.sm.count * work.blocks_per_sm));
        const ConvolutionTime time = convolution_law(work, gpu, c.bytes.read, 0.0, c.bytes.written);
        EXPECT_GE(time.steps, wgmma ? 16.0 : 4.0);
      }
      expect_timed(c, kernel, gpu);
      if (HasFailure()) break;
    }
    std::size_t expected = tensor_tiles(p.role, Family::mma_sync, p.type != DType::tf32).size();
    if (!large || p.role == Role::input_gradient)
      expected += tensor_tiles(p.role, Family::wgmma, p.type != DType::tf32).size();
    EXPECT_EQ(tiles.size(), expected) << "every tile, whole at least";
  }
}

TEST(StatedConvolutionKernels, of_cuda_cores_are_those_of_the_table) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    const ConvolutionCase c = drawn_convolution_case(draws);
    const ConvolutionProblem& p = c.p;
    SCOPED_TRACE(text_of(seed, p));
    const bool few = p.channels<8, large = p.taps()> 25;
    using Kernel = std::tuple<int, int, Role>;
    std::multiset<Kernel> kernels, expected;
    for (const ConvolutionKernel& kernel : cuda_core_convolutions(p, c.bytes, gpu)) {
      const GemmWork& work = kernel.work;
      kernels.insert({work.tile_m, work.tile_n, work.gathering.role});
      EXPECT_EQ(work.family, Family::simt);
      EXPECT_EQ(work.tile_k, 8);
      EXPECT_EQ(work.split_k, 1);
      const std::int64_t pixels = p.out_size * p.out_size;
      switch (work.gathering.role) {
        case Role::forward:
          EXPECT_EQ(product_in(work), stated_product(p));
          EXPECT_EQ(work.gathering.dense_taps, few);
          EXPECT_EQ(work.gathering.indexed, large && !few);
          break;
        case Role::input_gradient:  // all taps of every pixel
          EXPECT_EQ(product_in(work),
                    Product(p.batch * p.size * p.size, p.channels, p.taps() * p.filters, p.filters, 1));
          break;
        case Role::weight_gradient:
          EXPECT_EQ(std::tuple(work.m, work.n, work.k), std::tuple(p.filters, p.taps() * p.channels, p.batch * pixels));
          EXPECT_EQ(work.gathering.indexed, large);
          break;
        case Role::scattered_images:  // a product an image
          EXPECT_EQ(std::tuple(work.batch, work.m, work.n, work.k),
                    std::tuple(p.batch, p.taps() * p.channels, pixels, p.filters));
          break;
        default: {  // one for every 512 pixels of an image
          const std::int64_t parts = (pixels + 511) / 512;
          EXPECT_EQ(std::tuple(work.batch, work.m, work.n, work.k),
                    std::tuple(p.batch * parts, p.filters, p.taps() * p.channels, (pixels + parts - 1) / parts));
          const double planes = 32.0 / static_cast<double>(std::min<std::int64_t>(32, p.taps()));
          EXPECT_NEAR(work.gathering.scattered_rows, p.channels_last ? 0.0 : planes, 1e-12);
        }
      }
      expect_timed(c, kernel, gpu);
      if (HasFailure()) break;
    }
    if (p.role == Role::forward) {
      expected.insert({32, 32, p.role});
      if (!large || few) expected.insert({{128, 32, p.role}, {256, 64, p.role}});
    } else if (p.role == Role::input_gradient) {
      expected = {{32, 32, p.role}, {64, 32, Role::scattered_images}};
    } else {
      expected = {{32, 32, p.role}, {32, 32, Role::scattered_filters}};
    }
    EXPECT_EQ(kernels, expected);
  }
}

}  // namespace
}  // namespace ridgeline

#include "sim/kernels/convolution/convolution_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>

#include "sim/kernels/convolution/convolution_tiles.h"
#include "sim/occupancy/occupancy.h"
#include "sim/timing/convolution/convolution_law.h"
#include "sim/units/ceil_div.h"

namespace ridgeline {
namespace {

using Role = Gathering::Role;
using Family = GemmWork::Family;

/// Larger filters have no forward and weight-gradient kernels of wgmma, and compute each address elsewhere.
constexpr std::int64_t kMostTableTaps = 25;
/// Pixels of a part of the weights' sum on the CUDA cores.
constexpr std::int64_t kPixelsOfPart = 512;
/// Fewest channels that fill a k-step of a tap there.
constexpr std::int64_t kChannelsOfStep = 8;

/// The product of a role: sides, inner dimension and what its panels are gathered from.
GemmWork product_of(const ConvolutionProblem& p, Family family, double read_bytes) {
  GemmWork work{.family = family, .type = p.type};
  work.gathering = {.role = p.role, .taps = p.taps()};
  const std::int64_t outputs = p.batch * p.out_pixels();
  switch (p.role) {
    case Role::forward:
      work.m = p.apart * outputs;
      work.n = p.filters;
      work.gathering.channels = p.channels;
      work.k = p.taps() * p.channels;
      work.layout = static_cast<int>(Layout::nt);
      break;
    case Role::input_gradient:
      work.m = p.apart * p.batch * p.pixels();
      work.n = p.channels;
      work.gathering.phases = p.phases();
      work.gathering.channels = p.filters;
      work.k = std::max<std::int64_t>(1, p.taps() * p.filters / work.gathering.phases);
      work.layout = static_cast<int>(Layout::nt);
      break;
    default:
      work.m = p.filters;
      work.gathering.taps = p.apart * p.taps();
      work.n = work.gathering.taps * p.channels;
      work.k = outputs;
      work.layout = static_cast<int>(Layout::tn);
      break;
  }
  const double asked =
      static_cast<double>(bytes_of(p.type)) * static_cast<double>(work.m + work.n) * static_cast<double>(work.k);
  work.distinct_reads = std::min(1.0, read_bytes / asked);
  return work;
}

/// Collects the kernels that fit an SM.
class Candidates {
 public:
  Candidates(const ConvolutionBytes& bytes, const Gpu& gpu) : bytes_(bytes), gpu_(gpu) {}

  void consider(GemmWork work, const ConvolutionTile& tile, std::span<const int> splits, double least_steps) {
    const bool persistent = work.family == Family::wgmma;
    const int resident =
        persistent ? 1 : occupancy_of(gpu_.sm, tile.threads, tile.registers, tile.shared_kib * 1024).blocks;
    if (resident == 0) return;
    work.tile_m = tile.m;
    work.tile_n = tile.n;
    work.tile_k = tile.k;
    work.blocks_per_sm = resident;
    for (const int split : splits) {
      work.split_k = split;
      const ConvolutionTime time = convolution_law(work, gpu_, bytes_.read, 0.0, bytes_.written);
      if (split > 1 && (time.tiles * split > gpu_.sm.count * resident || time.steps < least_steps)) return;
      kernels_.push_back({work, tile.threads, tile.registers, tile.shared_kib * std::int64_t{1024}, time.tiles * split,
                          time.total, time.fixed + time.compute});
    }
  }

  [[nodiscard]] std::vector<ConvolutionKernel> take() { return std::move(kernels_); }

 private:
  const ConvolutionBytes& bytes_;
  const Gpu& gpu_;
  std::vector<ConvolutionKernel> kernels_;
};

constexpr std::array kWhole{1};
/// Weight gradients have few tiles and long sums. Persistent kernels of every direction share out k-steps so that tiles
/// and splits fill the SMs.
constexpr std::array kSplits{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr std::array kPersistentSplits{1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                                       16, 18, 20, 22, 24, 26, 28, 32, 36, 44, 52, 64, 96, 128};
constexpr double kLeastPersistentSteps = 16.0, kLeastTiledSteps = 4.0;

}  // namespace

std::vector<ConvolutionKernel> tensor_convolutions(const ConvolutionProblem& problem, const ConvolutionBytes& bytes,
                                                   const Gpu& gpu) {
  Candidates candidates(bytes, gpu);
  const bool weights = problem.role == Role::weight_gradient, large = problem.taps() > kMostTableTaps;
  const auto add = [&](const GemmWork& work, std::span<const int> splits, double least_steps) {
    for (const ConvolutionTile& tile : tensor_tiles(problem.role, work.family, is_half(problem.type)))
      candidates.consider(work, tile, splits, least_steps);
  };
  if (gpu.sm.warpgroup_mma && gpu.sm.tensor_memory_accelerator && (!large || problem.role == Role::input_gradient)) {
    GemmWork work = product_of(problem, Family::wgmma, bytes.read);
    work.gathering.indexed = problem.role == Role::input_gradient && (large || problem.phases() > 1);
    add(work, kPersistentSplits, kLeastPersistentSteps);
  }
  add(product_of(problem, Family::mma_sync, bytes.read),
      weights ? std::span<const int>(kSplits) : std::span<const int>(kWhole), kLeastTiledSteps);
  return candidates.take();
}

namespace {

/// Products of gathered panels that only GPUs without TF32 run in every direction.
void consider_volta(Candidates& choice, const GemmWork& work) {
  const bool weights = work.gathering.role == Role::weight_gradient;
  const auto splits = weights ? std::span<const int>(kSplits) : std::span<const int>(kWhole);
  for (const ConvolutionTile& tile : kVoltaTiles) choice.consider(work, tile, splits, kLeastTiledSteps);
  if (work.gathering.role == Role::forward) return;  // has the others already
  for (const ConvolutionTile& tile : kCudaCoreTiles) choice.consider(work, tile, splits, kLeastTiledSteps);
}

}  // namespace

std::vector<ConvolutionKernel> cuda_core_convolutions(const ConvolutionProblem& problem, const ConvolutionBytes& bytes,
                                                      const Gpu& gpu) {
  const ConvolutionProblem& p = problem;
  const bool few = p.channels<kChannelsOfStep, large = p.taps()> kMostTableTaps;
  GemmWork work = product_of(p, Family::simt, bytes.read);
  Candidates choice(bytes, gpu);
  switch (p.role) {
    case Role::forward:
      work.gathering.dense_taps = few;
      work.gathering.indexed = large && !few;
      for (const ConvolutionTile& tile : kCudaCoreTiles)
        if (!work.gathering.indexed || tile.m == kCudaCoreTiles.front().m) choice.consider(work, tile, kWhole, 1.0);
      break;
    case Role::input_gradient: {
      work.gathering.phases = 1;
      work.k = p.taps() * p.filters;
      choice.consider(work, kCudaCoreTiles.front(), kWhole, 1.0);
      // Taps by pixels of each image, added up where they overlap.
      GemmWork scattered = work;
      scattered.gathering = {.role = Role::scattered_images};
      scattered.batch = p.apart * p.batch;
      scattered.m = p.channels * p.taps();
      scattered.n = p.out_pixels();
      scattered.k = p.filters;
      choice.consider(scattered, kScatteredImages, kWhole, 1.0);
      break;
    }
    default: {
      work.gathering.indexed = large;
      choice.consider(work, kCudaCoreTiles.front(), kWhole, 1.0);
      // A part of an image's pixels a block, added up where all parts meet.
      const std::int64_t pixels = p.out_pixels(), parts = ceil_div(pixels, kPixelsOfPart);
      GemmWork scattered = work;
      scattered.gathering = {.role = Role::scattered_filters};
      if (!p.channels_last)
        scattered.gathering.scattered_rows = static_cast<double>(kScatteredWeights.n) /
                                             static_cast<double>(std::min<std::int64_t>(p.taps(), kScatteredWeights.n));
      scattered.batch = p.apart * p.batch * parts;
      scattered.k = ceil_div(pixels, parts);
      choice.consider(scattered, kScatteredWeights, kWhole, 1.0);
      break;
    }
  }
  if (is_before_ampere(gpu.architecture) && !work.gathering.indexed) consider_volta(choice, work);
  std::vector<ConvolutionKernel> kernels = choice.take();
  if (kernels.empty()) throw std::invalid_argument(fmt::format("no convolution kernel fits an SM of {}", gpu.name));
  return kernels;
}

std::vector<ConvolutionKernel> plain_convolution_products(std::int64_t batch, std::int64_t m, std::int64_t n,
                                                          std::int64_t k, const Gpu& gpu) {
  // Rows of the whole batch, one product under the other; whole tiles of the narrowest kernel.
  const std::int64_t rows = batch * ceil_div(m, kCudaCoreTiles.front().m) * kCudaCoreTiles.front().m;
  GemmWork work{.family = Family::simt, .m = rows, .n = n, .k = k};
  work.gathering = {.role = Role::forward, .channels = k};
  const double element = 4.0;
  const ConvolutionBytes bytes{
      .read = element * static_cast<double>(k) * (static_cast<double>(rows) + static_cast<double>(batch * n)),
      .written = element * static_cast<double>(rows) * static_cast<double>(n)};
  Candidates choice(bytes, gpu);
  for (const ConvolutionTile& tile : kCudaCoreTiles) choice.consider(work, tile, kWhole, 1.0);
  return choice.take();
}

std::string name_of_convolution(const GemmWork& work) {
  const char* role = "fprop";
  switch (work.gathering.role) {
    case Role::input_gradient: role = "dgrad"; break;
    case Role::weight_gradient: role = "wgrad"; break;
    case Role::scattered_images: role = "dgrad_engine"; break;
    case Role::scattered_filters: role = "wgrad_engine"; break;
    default: break;
  }
  return fmt::format("{}_implicit_gemm_{}_{}x{}x{}{}", role, name_of(work.type), work.tile_m, work.tile_n, work.tile_k,
                     work.split_k > 1 ? "_splitK" : "");
}

KernelLaunch launch_of(const ConvolutionKernel& kernel, const Gpu& gpu) {
  const GemmWork& work = kernel.work;
  KernelLaunch launch;
  launch.time_class = TimeClass::tensor_contraction;
  launch.threads_per_block = kernel.threads;
  launch.registers_per_thread = kernel.registers;
  launch.shared_bytes_per_block = kernel.shared_bytes;
  const auto blocks = static_cast<std::int64_t>(kernel.blocks);
  launch.grid = {work.family == Family::wgmma ? std::min<std::int64_t>(blocks, gpu.sm.count) : blocks, 1, 1};
  launch.pipe = work.family == Family::wgmma      ? Pipe::tensor_wgmma
                : work.family == Family::mma_sync ? Pipe::tensor_mma
                                                  : Pipe::fp32;
  launch.type = work.family == Family::simt ? DType::fp32 : work.type;
  launch.work = work;
  return launch;
}

}  // namespace ridgeline

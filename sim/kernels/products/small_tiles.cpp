#include "sim/kernels/products/small_tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/products/gemm_launch.h"
#include "sim/timing/math_rate.h"

namespace ridgeline {
namespace {

struct SmallTile {
  int m, n, k, warps, registers, shared_bytes;
};

// Read from kernel names of an H200 (cutlass_80_wmma, cutlass_75_wmma, sm80_xmma ... 32x32x64, cutlass_80_simt).
constexpr std::array kSmallPairs{SmallTile{32, 32, 128, 4, 90, 37376}, SmallTile{32, 32, 64, 4, 64, 9728},
                                 SmallTile{32, 32, 32, 4, 48, 5120}, SmallTile{16, 16, 128, 1, 120, 16896},
                                 SmallTile{16, 16, 64, 1, 72, 4608}};
constexpr std::array kSmallLongSteps{SmallTile{32, 32, 128, 4, 90, 37376}, SmallTile{16, 16, 128, 1, 120, 16896}};
constexpr std::array kSmallSingles{SmallTile{32, 32, 128, 4, 128, 18944}, SmallTile{32, 32, 64, 4, 128, 9728}};
constexpr std::array kSmallTf32{SmallTile{32, 32, 64, 4, 72, 49152}};
constexpr std::array kSmallCudaCores{SmallTile{32, 128, 8, 4, 80, 25600}};
constexpr std::array kSmallSummed{SmallTile{64, 64, 8, 4, 76, 20480}};

/// The kernels of a kind of product. `step_share`: what a k-step's elements, in panels of 32 + 32 a warp group of four,
/// add to its time.
struct Kind {
  std::span<const SmallTile> tiles;
  MemoryBoundKernel kernel = MemoryBoundKernel::small_pairs;
  Pipe pipe = Pipe::tensor_mma;
  double step_share = 0;
  double steps = 1;          ///< factor on the k-steps: with a single buffer a block waits for its loads in each
  bool whole_steps = false;  ///< a step takes its time whatever part of it lies in k
  /// Least k that is split and of a piece; 0: never.
  std::int64_t split_from = 0, piece = 0;
  bool always_summed = false;  ///< a second kernel even where k is in one piece
};

/// fp32 products of few outputs run in splits whose second kernel also stands behind a single one: 62 of 64 profiled
/// ones with up to these many outputs and this k; 33 of 34 others with up to kFewRowwise (B along k) or kVeryFew.
bool has_few_results(const GemmWork& problem) {
  constexpr std::int64_t kFewColumnwise = 50000, kShortK = 1000, kFewRowwise = 4000, kVeryFew = 1000, kTurnedFrom = 96;
  if (problem.type != DType::fp32 || problem.batch > 1 || problem.bias || problem.k < 2 ||
      std::min(problem.m, problem.n) < 2)
    return false;
  const std::int64_t results = problem.m * problem.n;
  switch (static_cast<Layout>(problem.layout)) {
    case Layout::nn: return results <= (problem.k <= kShortK ? kFewColumnwise : kVeryFew);
    case Layout::nt: return results <= kFewRowwise;
    case Layout::tn: return problem.k >= kTurnedFrom && results <= kVeryFew;
    default: return false;
  }
}

Kind kind_of(const GemmWork& problem, const Gpu& gpu) {
  const bool half = is_half(problem.type);
  if (problem.sparse != SparseOperand::none || !gpu.gemm.tiles.empty()) return {};
  if (half && problem.family != GemmWork::Family::simt) {
    // 16-bit rows that begin at pairs of values; at single ones bf16 has no such kernels.
    if (problem.alignment >= 16 || problem.k < 2) return {};
    constexpr std::int64_t kSplitFrom = 500, kPiece = 64;
    if (problem.alignment >= 4) {
      Kind kind{kSmallPairs, MemoryBoundKernel::small_pairs, Pipe::tensor_mma, 0.029, 1.0, false, kSplitFrom, kPiece};
      if (problem.type != DType::bf16) return kind;
      // bf16's have long steps, or one buffer where fp16's have two.
      const bool long_steps = problem.batch == 1 && (problem.layout == static_cast<int>(Layout::nn) ||
                                                     problem.layout == static_cast<int>(Layout::nt));
      if (long_steps) kind.tiles = kSmallLongSteps;
      kind.steps = long_steps ? 1.1 : 1.4;
      kind.whole_steps = long_steps;
      return kind;
    }
    if (problem.type == DType::fp16)
      return {kSmallSingles, MemoryBoundKernel::small_singles, Pipe::tensor_mma, 0.012, 1.0, false, kSplitFrom, kPiece};
    return {};
  }
  if (half || !gpu.sm.async_copy) return {};
  // An outer product has nothing for the tensor cores. Aligned rows run the tiled kernels: none of 55 profiled ones
  // that this law would take ran small tiles.
  if (problem.type == DType::tf32 && problem.family != GemmWork::Family::simt && problem.k > 1 &&
      problem.alignment >= 16)
    return {};
  if (problem.type == DType::tf32 && problem.family != GemmWork::Family::simt && problem.k > 1)
    return {kSmallTf32, MemoryBoundKernel::small_tf32, Pipe::tensor_mma, 0.154};
  if (has_few_results(problem))
    return {kSmallSummed, MemoryBoundKernel::small_summed, Pipe::fp32, 0.052, 1.0, false, 0, 4, true};
  return {kSmallCudaCores, MemoryBoundKernel::small_cuda_cores, Pipe::fp32, 0.024};
}

/// 16-bit products: splits are worth a second kernel where k is long; 199 profiled ones of 48 to 16,440.
bool may_split(const GemmWork& problem, const Kind& kind, int splits) {
  if (splits == 1) return true;
  if (problem.batch > 1 || problem.k < splits * kind.piece) return false;
  return kind.always_summed ||
         (kind.split_from > 0 && problem.k >= kind.split_from && problem.k >= 2 * std::min(problem.m, problem.n));
}

/// A k-step longer than k twice over is not taken, but for the one that each list ends with (64; 128, 8 where there is
/// no other): shorter ones in its place make the times of small products of an H200 worse, not better.
bool suits(const SmallTile& tile, const Kind& kind, std::int64_t k) {
  return 2 * k > tile.k || tile.k == kind.tiles.back().k;
}

/// Tiles of one warp run where a bias is added: in 19 of 52 profiled 16-bit products in small tiles, of others in 35 of
/// 446; this law, which has them the fastest, would take them in half of all.
bool is_taken(const SmallTile& tile, const GemmWork& problem) { return tile.warps > 1 || problem.bias; }

KernelLaunch launch_of(const GemmWork& problem, const Gpu& gpu, const Kind& kind, const SmallTile& tile, int splits,
                       const std::vector<Access>& reads) {
  const double m = static_cast<double>(problem.m), n = static_cast<double>(problem.n),
               batch = static_cast<double>(problem.batch), k = static_cast<double>(problem.k);
  const std::int64_t rows = ceil_div(problem.m, tile.m), columns = ceil_div(problem.n, tile.n);
  const double blocks = static_cast<double>(rows * columns * problem.batch * splits), part = k / splits;
  const double steps = std::ceil(part / tile.k);
  constexpr double kMma = 16.0, kPanels = 64.0, kWarps = 4.0;
  const double filled = kind.whole_steps ? 1.0 : std::min(1.0, std::ceil(part / kMma) * kMma / tile.k);
  const double panels = filled * tile.k * (tile.m + tile.n) / kPanels * kWarps / tile.warps;
  // Operands that are not contiguous along k are turned in shared memory, a k-step after the other.
  const auto layout = static_cast<Layout>(problem.layout);
  const double turned = layout == Layout::nt ? 0.0 : layout == Layout::tn ? 2.0 : 1.0;
  const double lanes = lanes_per_cycle(gpu.sm);
  const double multiply_adds = blocks * steps * tile.k * tile.m * tile.n;
  KernelLaunch launch = memory_bound_launch(
      kind.kernel, kind.pipe == Pipe::fp32 ? "gemm_simt_small" : "gemm_wmma_small", TimeClass::tensor_contraction,
      problem.type, {rows * columns, problem.batch * splits, 32 * tile.warps, tile.registers, tile.shared_bytes},
      {.elements = batch * k * (static_cast<double>(columns) * m + static_cast<double>(rows) * n),
       .padded_elements = multiply_adds * lanes / math_rate(kind.pipe, problem.type, gpu).multiply_adds,
       .iterations = kind.steps * steps * (1.0 + kind.step_share * panels),
       .tail_steps = turned * steps});
  launch.pipe = kind.pipe;
  launch.flops = 2.0 * batch * m * n * k;
  launch.reads = reads;
  launch.reads[0].requested = std::max(reads[0].bytes, static_cast<double>(columns) * reads[0].bytes);
  launch.reads[1].requested = std::max(reads[1].bytes, static_cast<double>(rows) * reads[1].bytes);
  return launch;
}

/// Aligned rows of tf32 on tensor cores with few results: 35 of 40 profiled ones with k up to 300 (B along k: 128).
bool is_summed_tf32(const GemmWork& problem) {
  constexpr std::int64_t kFewResults = 10000, kShortSum = 128, kLongerSum = 300;
  const bool rowwise = problem.layout == static_cast<int>(Layout::nt);
  return problem.m * problem.n <= kFewResults && problem.k <= (rowwise ? kShortSum : kLongerSum);
}

}  // namespace

bool is_always_summed(const GemmWork& problem) {
  if (problem.family == GemmWork::Family::simt || problem.batch > 1 || problem.bias || problem.k < 2) return false;
  if (problem.type == DType::tf32) return problem.alignment >= 16 && is_summed_tf32(problem);
  if (problem.type != DType::bf16 || problem.alignment >= 4) return false;
  constexpr std::int64_t kNarrow = 100, kShort = 100, kMostResults = 200000, kVeryShort = 9, kMostOfVeryShort = 2000000;
  const std::int64_t results = problem.m * problem.n;
  if (problem.layout == static_cast<int>(Layout::nn)) return problem.k <= kVeryShort && results <= kMostOfVeryShort;
  return problem.k <= kShort && problem.m > problem.n && problem.n > 1 && problem.n <= kNarrow &&
         results <= kMostResults;
}

namespace {

/// Far above it no small tile is fastest.
constexpr double kMostFlops = 4e9;
bool is_small(const GemmWork& problem) {
  return 2.0 * static_cast<double>(problem.batch * problem.m * problem.n * problem.k) <= kMostFlops;
}

}  // namespace

bool is_few_summed(const GemmWork& problem, const Gpu& gpu) {
  return is_small(problem) && kind_of(problem, gpu).always_summed;
}

std::vector<ProductWay> small_tile_ways(const GemmWork& problem, const Gpu& gpu, const std::vector<Access>& reads,
                                        const std::vector<Access>& writes, const SmallTileRun* only) {
  std::vector<ProductWay> ways;
  if (!is_small(problem)) return ways;
  const Kind kind = kind_of(problem, gpu);
  GemmWork sum{.type = problem.type,
               .batch = problem.batch,
               .m = problem.m,
               .n = problem.n,
               .k = problem.k,
               .stages = kSummedStages};
  const auto add = [&](const SmallTile& tile, int splits) {
    ProductWay way{launch_of(problem, gpu, kind, tile, splits, reads)};
    way.front().writes = writes;
    if (splits > 1 || kind.always_summed) {
      sum.split_k = splits;
      way.push_back(split_reduction(sum, writes));
      way.front().writes = way.back().reads;
    }
    ways.push_back(std::move(way));
  };
  for (const SmallTile& tile : kind.tiles) {
    if (only != nullptr) {
      if (tile.m == only->m && tile.n == only->n && tile.k == only->k) add(tile, only->splits);
      continue;
    }
    if (!is_taken(tile, problem) || !suits(tile, kind, problem.k)) continue;
    // Of one tile as many as fill an H200's SMs twice (264 blocks).
    for (const int splits : {1, 2, 4, 8, 16, 32, 64, 128, 264}) {
      if (!may_split(problem, kind, splits)) break;
      if (!kind.always_summed && (splits == 2 || splits == 4)) continue;
      if (kind.always_summed && splits > 128) continue;
      add(tile, splits);
    }
  }
  return ways;
}

}  // namespace ridgeline

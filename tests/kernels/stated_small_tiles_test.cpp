// Products in small tiles against the table and formulas of docs/model/small-products.md, written down one after the
// other, over random products of three generations.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/products/gemm_selection.h"
#include "sim/kernels/products/small_tiles.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;

using Sides = std::tuple<int, int, int>;

/// What the page says of one product's small tiles.
struct StatedTiles {
  std::set<Sides> tiles;
  double step_share = 0, c = 1;
  bool long_steps = false, summed = false;
  bool splits = false;  ///< of 16 bits: 8, 16, 32
  double rate = 0;      ///< multiply-adds a clock of the pipe
};

StatedTiles stated_tiles(const Matmul& op, const Gpu& gpu) {
  StatedTiles s;
  const GemmWork problem = gemm_problem(op, gpu);
  const bool fp16 = op.type == DType::fp16, bf16 = op.type == DType::bf16, half = fp16 || bf16;
  const bool cuda = problem.family == GemmWork::Family::simt;
  const double per_e = 4096.0 / static_cast<double>(bytes_of(op.type)) / 6.154 * gpu.sm.schedulers;
  if (half) {
    if (cuda || problem.alignment >= 16 || op.k < 2) return s;
    if (problem.alignment >= 4) {
      s.long_steps = bf16 && op.batch == 1 && (op.layout == Layout::nn || op.layout == Layout::nt);
      s.tiles = {{32, 32, 128}};
      if (op.bias) s.tiles.insert({16, 16, 128});
      if (!s.long_steps) {
        s.tiles.insert({{32, 32, 64}, {32, 32, 32}});
        if (op.bias) s.tiles.insert({16, 16, 64});
      }
      s.step_share = 0.029;
      s.c = !bf16 ? 1.0 : s.long_steps ? 1.1 : 1.4;
    } else if (fp16) {
      s.tiles = {{32, 32, 64}, {32, 32, 128}};
      s.step_share = 0.012;
    }
    s.splits = op.batch == 1 && op.k >= 500 && op.k >= 2 * std::min(op.m, op.n);
    s.rate = std::min(fp16 ? gpu.sm.rates.tensor_fp16 : gpu.sm.rates.tensor_bf16, per_e);
    return s;
  }
  if (!gpu.sm.async_copy) return s;
  if (op.type == DType::tf32 && !cuda && op.k > 1) {
    if (problem.alignment >= 16) return s;
    s.tiles = {{32, 32, 64}};
    s.step_share = 0.154;
    s.rate = std::min(gpu.sm.rates.tensor_tf32, per_e);
    return s;
  }
  s.rate = gpu.sm.rates.fp32;
  const std::int64_t results = op.m * op.n;
  s.summed =
      op.type == DType::fp32 && op.batch == 1 && !op.bias && op.k >= 2 && std::min(op.m, op.n) >= 2 &&
      ((op.layout == Layout::nn && results <= (op.k > 1000 ? 1000 : 50000)) ||
       (op.layout == Layout::nt && results <= 4000) || (op.layout == Layout::tn && op.k >= 96 && results <= 1000));
  s.tiles = {s.summed ? Sides{64, 64, 8} : Sides{32, 128, 8}};
  s.step_share = s.summed ? 0.052 : 0.024;
  return s;
}

/// Passes of a block, and lanes that the multiply-adds of whole tiles take, in `z` splits.
struct StatedWork {
  double passes, padded;
};
StatedWork stated_work(const Matmul& op, const StatedTiles& s, const Sides& tile, double z, const Gpu& gpu) {
  const auto [tm, tn, tk] = tile;
  const double part = static_cast<double>(op.k) / z, K = std::ceil(part / tk), w = tm == 16 ? 1.0 : 4.0;
  const double phi = s.long_steps ? 1.0 : std::min(1.0, 16.0 * std::ceil(part / 16.0) / tk);
  double lanes = 32.0 * gpu.sm.schedulers;  // that a clock has beside the rest
  if (gpu.sm.rates.fp32 > 0.0) lanes = std::min(lanes, gpu.sm.rates.fp32 / 0.6);
  if (gpu.sm.rates.int32 > 0.0) lanes = std::min(lanes, gpu.sm.rates.int32 / 0.4);
  const double N = std::ceil(static_cast<double>(op.m) / tm) * std::ceil(static_cast<double>(op.n) / tn) *
                   static_cast<double>(op.batch) * z;
  return {s.c * K * (1.0 + s.step_share * phi * tk * (tm + tn) / 64.0 * 4.0 / w),
          N * K * tk * tm * tn * lanes / s.rate};
}

/// The tile that a way has run in, or none.
const Sides* tile_of_way(const Matmul& op, const StatedTiles& s, const KernelLaunch& first, const Gpu& gpu) {
  const auto& work = std::get<MemoryBoundWork>(first.work);
  for (const Sides& tile : s.tiles) {
    const StatedWork stated =
        stated_work(op, s, tile, static_cast<double>(first.grid[1]) / static_cast<double>(op.batch), gpu);
    if (std::abs(stated.passes - work.iterations) < 1e-9 * stated.passes &&
        std::abs(stated.padded - work.padded_elements) < 1e-9 * stated.padded)
      return &tile;
  }
  return nullptr;
}

void expect_tile(const Matmul& op, const StatedTiles& s, const Sides& tile, const ProductWay& way) {
  const auto [tm, tn, tk] = tile;
  const KernelLaunch& first = way.front();
  const auto& work = std::get<MemoryBoundWork>(first.work);
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k),
               batch = static_cast<double>(op.batch), e = static_cast<double>(bytes_of(op.type));
  const double rows = std::ceil(m / tm), columns = std::ceil(n / tn), z = static_cast<double>(first.grid[1]) / batch;
  const double w = first.threads_per_block / 32.0, K = std::ceil(k / z / tk);
  EXPECT_DOUBLE_EQ(work.elements, batch * k * (columns * m + rows * n));
  const double turned = op.layout == Layout::nt ? 0.0 : op.layout == Layout::tn ? 2.0 : 1.0;
  EXPECT_DOUBLE_EQ(work.tail_steps, K * turned);
  EXPECT_DOUBLE_EQ(first.flops, 2.0 * batch * m * n * k);
  EXPECT_DOUBLE_EQ(first.blocks(), rows * columns * batch * z);
  EXPECT_DOUBLE_EQ(first.reads[0].requested, columns * first.reads[0].bytes);
  EXPECT_DOUBLE_EQ(first.reads[1].requested, rows * first.reads[1].bytes);
  EXPECT_EQ(w, tm == 16 ? 1.0 : 4.0);
  EXPECT_EQ(way.size(), z > 1.0 || s.summed ? 2u : 1u);
  if (way.size() == 2) {
    EXPECT_DOUBLE_EQ(first.written_bytes(), 4.0 * z * batch * m * n) << "partial sums";
    EXPECT_DOUBLE_EQ(way[1].read_bytes(), first.written_bytes());
    EXPECT_DOUBLE_EQ(way[1].written_bytes(), e * batch * m * n);
  } else {
    EXPECT_DOUBLE_EQ(first.written_bytes(), e * batch * m * n);
  }
}

Matmul drawn_small(Draws& draws) {
  Matmul op;
  op.type = std::array{DType::fp32, DType::tf32, DType::bf16, DType::fp16}[draws.index(4)];
  op.layout = std::array{Layout::nn, Layout::nt, Layout::tn}[draws.index(3)];
  const auto side = [&](double most) {
    const std::int64_t unit = std::int64_t{1} << draws.index(4);
    return std::max<std::int64_t>(1, std::llround(draws.between(1, most)) / unit) * unit;
  };
  op.batch = draws.index(4) == 0 ? side(20) : 1;
  op.m = side(1500), op.n = side(1500), op.k = side(5000);
  op.bias = draws.index(3) == 0;
  return op;
}

TEST(StatedSmallTiles, tiles_splits_passes_and_padding_are_what_the_page_says) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const std::array gpus{load_gpu("nvidia-h200-sxm-141gb"), load_gpu("nvidia-a100-sxm4-80gb"),
                        load_gpu("nvidia-v100-sxm2-16gb")};
  int tried = 0;
  for (int i = 0; i < 5000; ++i) {
    const Matmul op = drawn_small(draws);
    const Gpu& gpu = gpus[draws.index(3)];
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": " + std::to_string(op.batch) + " x " +
                 std::to_string(op.m) + " x " + std::to_string(op.n) + " x " + std::to_string(op.k) + " layout " +
                 std::to_string(static_cast<int>(op.layout)) + " type " + std::to_string(static_cast<int>(op.type)) +
                 (op.bias ? " bias" : "") + " on " + gpu.name);
    const double e = static_cast<double>(bytes_of(op.type)), batch = static_cast<double>(op.batch);
    const std::vector<Access> reads{{.operand = 0, .bytes = e * batch * static_cast<double>(op.m * op.k)},
                                    {.operand = 1, .bytes = e * batch * static_cast<double>(op.n * op.k)}},
        writes{{.operand = 2, .bytes = e * batch * static_cast<double>(op.m * op.n)}};
    const auto ways = small_tile_ways(gemm_problem(op, gpu), gpu, reads, writes);
    StatedTiles s = stated_tiles(op, gpu);
    const bool small =
        2.0 * batch * static_cast<double>(op.m) * static_cast<double>(op.n) * static_cast<double>(op.k) <= 4e9;
    if (!small) s.tiles.clear();
    // Steps of 2k and longer run only where they are 64 long or of the only length.
    std::set<int> lengths;
    for (const Sides& tile : s.tiles) lengths.insert(std::get<2>(tile));
    std::erase_if(s.tiles, [&](const Sides& tile) {
      const int length = std::get<2>(tile);
      return length >= 2 * op.k && length != 64 && lengths.size() > 1;
    });
    std::set<std::int64_t> splits{1};
    if (s.splits)
      for (const std::int64_t z : {8, 16, 32, 64, 128, 264})
        if (op.k >= 64 * z) splits.insert(z);
    if (s.summed)
      for (const std::int64_t z : {2, 4, 8, 16, 32, 64, 128})
        if (op.k >= 4 * z) splits.insert(z);
    ASSERT_EQ(ways.size(), s.tiles.size() * splits.size());
    std::set<std::int64_t> seen;
    for (const ProductWay& way : ways) {
      seen.insert(way.front().grid[1] / op.batch);
      const Sides* tile = tile_of_way(op, s, way.front(), gpu);
      ASSERT_NE(tile, nullptr);
      expect_tile(op, s, *tile, way);
      ++tried;
    }
    EXPECT_EQ(seen, ways.empty() ? std::set<std::int64_t>{} : splits);
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(tried, 1000);
}

}  // namespace
}  // namespace ridgeline

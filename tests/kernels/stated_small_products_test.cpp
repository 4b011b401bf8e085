// Vectors and small products against the formulas and bounds of docs/model/small-products.md, written down one after
// the other, over random products.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/products/few_vectors.h"
#include "sim/kernels/products/gemm_selection.h"
#include "sim/kernels/products/scaled_product.h"
#include "sim/kernels/products/small_tiles.h"
#include "sim/kernels/products/vector_product.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;

std::int64_t up_to(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
double real(std::int64_t x) { return static_cast<double>(x); }
const MemoryBoundWork& stream_of(const KernelLaunch& launch) { return std::get<MemoryBoundWork>(launch.work); }
std::string_view kernel_of(const KernelLaunch& launch) {
  return name_of(static_cast<MemoryBoundKernel>(stream_of(launch).kernel_class));
}

Matmul drawn_sides(Draws& draws, double most_m, double most_n, double most_k) {
  const auto side = [&](double most) { return std::max<std::int64_t>(1, std::llround(draws.between(0.6, most))); };
  Matmul op;
  op.type = std::array{DType::fp32, DType::tf32, DType::bf16, DType::fp16}[draws.index(4)];
  op.layout = std::array{Layout::nn, Layout::nt, Layout::tn, Layout::tt}[draws.index(4)];
  op.batch = draws.index(3) == 0 ? side(40) : 1;
  op.m = side(most_m), op.n = side(most_n), op.k = side(most_k);
  op.bias = draws.index(3) == 0;
  return op;
}
std::string text_of(const Matmul& op) {
  return std::to_string(op.batch) + " x " + std::to_string(op.m) + " x " + std::to_string(op.n) + " x " +
         std::to_string(op.k) + " layout " + std::to_string(static_cast<int>(op.layout)) + " type " +
         std::to_string(static_cast<int>(op.type)) + (op.bias ? " bias" : "");
}
std::vector<Access> operands(const Matmul& op) {
  const double e = static_cast<double>(bytes_of(op.type));
  return {Access{.operand = 0, .bytes = e * real(op.batch * op.m * op.k)},
          Access{.operand = 1, .bytes = e * real(op.batch * op.n * op.k)}};
}
std::vector<Access> results(const Matmul& op) {
  return {Access{.operand = 2, .bytes = static_cast<double>(bytes_of(op.type)) * real(op.batch * op.m * op.n)}};
}

using Shape = std::tuple<int, int>;  // outputs by threads a sum

/// "A matrix times a vector": x × y by k.
std::set<Shape> stated_shapes(bool along_k, bool half, std::int64_t k, std::int64_t outputs, bool batched) {
  if (along_k && k < 64) return {half ? Shape{64, 2} : Shape{32, 2}};
  if (along_k) return {{16, 4}, {8, 8}, {8, 16}, {4, 32}};
  const std::set<Shape> wide{{4, 32}, {8, 32}, {32, 16}, {128, 4}};
  if (batched) return k < 300 ? std::set<Shape>{{32, 2}, {8, 32}, {64, 2}} : wide;
  if (half) return k < 50 ? std::set<Shape>{{128, 1}} : k < 300 ? std::set<Shape>{{8, 32}, {64, 2}} : wide;
  if (k <= 64) return {{32, 2}};
  if (k < 100 && outputs >= 128) return {{128, 1}};
  if (k < 175) return {{8, 32}, {64, 2}};
  return k < 240 ? std::set<Shape>{{64, 2}} : wide;
}

void expect_way(const Matmul& op, const ProductWay& way, bool along_k) {
  const double e = static_cast<double>(bytes_of(op.type)), k = real(op.k), o = real(std::max(op.m, op.n)),
               batch = real(op.batch);
  const KernelLaunch& first = way.front();
  const MemoryBoundWork& work = stream_of(first);
  EXPECT_DOUBLE_EQ(work.elements, batch * k * (o + 1.0));
  EXPECT_DOUBLE_EQ(first.flops, 2.0 * batch * k * o);
  EXPECT_EQ(first.time_class, TimeClass::tensor_contraction);
  const double z = real(first.grid[1]) / batch;
  // The shape that a block of so many threads on so many outputs has.
  const double x = std::round(o / (real(first.grid[0]) - 0.5)), threads = first.threads_per_block;
  bool fits = false;
  const std::set<Shape> shapes = stated_shapes(along_k, e == 2.0, op.k, std::max(op.m, op.n), op.batch > 1);
  for (const auto& [across, along] : shapes) {
    if (across * along != first.threads_per_block || up_to(std::max(op.m, op.n), across) != first.grid[0]) continue;
    const double y = along, v = k / (z * y);
    const bool few_registers = first.registers_per_thread < 50;
    const double n = along_k         ? std::ceil(k * e / (16.0 * y)) + (std::fmod(k * e, 16.0) != 0.0 ? 1.8 : 0.0)
                     : few_registers ? 1.83 * std::ceil(v / 4.0)
                                     : std::floor(v / 16.0) + 1.83 * std::ceil((v - 16.0 * std::floor(v / 16.0)) / 4.0);
    const double P = along_k ? batch * o : batch * k * o / std::min(32, across);
    const double u = along_k || few_registers ? 0.0 : std::log2(y);
    fits |= std::abs(work.iterations - n) < 1e-9 * n && std::abs(work.padded_elements - P) < 1e-9 * P &&
            work.tail_steps == u;
  }
  EXPECT_TRUE(fits) << x << " outputs, " << threads << " threads";
  if (z > 1.0) {
    ASSERT_EQ(way.size(), 2u);
    EXPECT_DOUBLE_EQ(first.written_bytes(), 4.0 * z * o);
    EXPECT_DOUBLE_EQ(way[1].read_bytes(), 4.0 * z * o);
    EXPECT_EQ(std::get<GemmWork>(way[1].work).split_k, static_cast<int>(z));
  } else {
    EXPECT_EQ(way.size(), 1u);
    EXPECT_DOUBLE_EQ(first.written_bytes(), e * batch * o);
  }
}

void expect_dots(const Matmul& op, const ProductWay& way, bool along_k) {
  const std::int64_t o = std::max(op.m, op.n), blocks = o == 1 ? 496 : along_k && bytes_of(op.type) == 4 ? 16 : 31;
  ASSERT_EQ(way.size(), 2u);
  const MemoryBoundWork &dots = stream_of(way[0]), &sums = stream_of(way[1]);
  EXPECT_EQ(kernel_of(way[0]), "vector_dots");
  EXPECT_EQ(way[0].grid[0] * way[0].grid[1], blocks * o);
  EXPECT_EQ(way[0].threads_per_block, 128);
  EXPECT_DOUBLE_EQ(dots.elements, real(op.k) * (real(o) + 1.0));
  EXPECT_DOUBLE_EQ(dots.iterations, real(up_to(op.k, 4 * 128 * blocks)));
  EXPECT_DOUBLE_EQ(way[0].flops, 2.0 * real(op.k * o));
  EXPECT_DOUBLE_EQ(way[0].written_bytes(), 4.0 * real(blocks * o));
  EXPECT_EQ(kernel_of(way[1]), "vector_sums");
  EXPECT_EQ(way[1].grid[0], o);
  EXPECT_DOUBLE_EQ(sums.iterations, real(up_to(blocks, 128)));
  EXPECT_DOUBLE_EQ(sums.elements, real(blocks * o));
  EXPECT_DOUBLE_EQ(way[1].read_bytes(), 4.0 * real(blocks * o));
}

TEST(StatedVectorProducts, shapes_passes_and_splits_are_what_the_page_says) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 3000; ++i) {
    Matmul op = drawn_sides(draws, 3000, 1, draws.index(2) == 0 ? 400 : 60000);
    if (draws.index(8) == 0) op.m = 1;
    op.k = std::max<std::int64_t>(2, op.k);
    const bool row = draws.index(2) == 0;
    if (row) std::swap(op.m, op.n);
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": " + text_of(op));
    const bool a_turned = op.layout == Layout::tn || op.layout == Layout::tt,
               b_turned = op.layout == Layout::nt || op.layout == Layout::tt, half = bytes_of(op.type) == 2;
    const std::int64_t o = std::max(op.m, op.n);
    const bool along_k = o == 1 || (op.n == 1 ? !a_turned : b_turned);
    const auto ways = vector_product_ways(op, operands(op), results(op));
    const bool few =
        op.batch == 1 &&
        (o == 1 || (along_k ? op.k >= 700 && o <= (half ? 40 : 104) : op.k >= 3800 && o <= (half ? 104 : 64)));
    if (op.batch == 1 && o == 1 && !half) {
      ASSERT_EQ(ways.size(), 1u);
      const std::int64_t pieces = up_to(op.k, up_to(op.k, 264));
      EXPECT_EQ(ways[0].front().grid[1], pieces);
      EXPECT_EQ(ways[0].size(), pieces > 1 ? 2u : 1u);
    } else if (few) {
      ASSERT_EQ(ways.size(), 1u);
      expect_dots(op, ways[0], along_k);
    } else {
      std::set<std::int64_t> splits{1};
      for (const std::int64_t z : {2, 4, 8, 16, 32})
        if (!along_k && op.batch == 1 && op.k >= 1500 && op.k >= 512 * z && o > 128) splits.insert(z);
      const auto shapes = stated_shapes(along_k, half, op.k, o, op.batch > 1);
      std::set<std::int64_t> tried;
      for (const ProductWay& way : ways) {
        tried.insert(way.front().grid[1] / op.batch);
        expect_way(op, way, along_k);
      }
      EXPECT_EQ(tried, splits);
      EXPECT_EQ(ways.size(), shapes.size() * splits.size());
    }
    if (::testing::Test::HasFailure()) break;
  }
}

/// "A matrix times a few vectors": the rows of A.
bool stated_few_vectors(const Matmul& op, bool odd_bf16, const Gpu& gpu) {
  const bool fp32 = op.type == DType::fp32;
  const std::int64_t m = op.m, n = op.n, k = op.k;
  if (m < 2 || n < 2 || k < 2) return false;
  const bool few_values = m <= 16 && k <= 40 && n <= 1000;
  if (op.layout == Layout::nt) {
    if (op.batch > 1)
      return (fp32 || odd_bf16) && m <= 16 && k >= 90 && up_to(n, 8) * up_to(m, 8) * op.batch >= 2 * gpu.sm.count;
    if (odd_bf16) return m <= 10 && op.bias;
    if (!fp32 || (op.bias && k >= (m > 10 ? 2000 : 9000))) return false;
    if (few_values) return true;
    return m <= (op.bias ? 16 : 8) && (op.bias || k <= 100 || n >= 1000) && (n < 10000 || m <= 4);
  }
  if (op.layout != Layout::nn || op.batch > 1) return false;
  if (odd_bf16) return (m <= 12 && k <= 320) || (m <= 16 && n <= 200 && k <= 128);
  return fp32 && (few_values || (m <= 12 && (k <= 320 || n >= 10000)));
}

TEST(StatedFewVectors, run_within_the_bounds_of_the_page_and_take_its_passes) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  int run = 0;
  for (int i = 0; i < 20000; ++i) {
    Matmul op = drawn_sides(draws, 20, draws.index(2) == 0 ? 300 : 20000, draws.index(2) == 0 ? 400 : 15000);
    // Sides at and around the bounds.
    constexpr std::array kBounds{2, 4, 8, 9, 10, 12, 16, 40, 90, 100, 128, 200, 320, 1000, 2000, 9000, 10000};
    for (std::int64_t* side : {&op.m, &op.n, &op.k})
      if (draws.index(3) == 0) *side = kBounds[draws.index(kBounds.size())] + static_cast<int>(draws.index(3)) - 1;
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": " + text_of(op));
    const bool odd_bf16 = op.type == DType::bf16 && gemm_problem(op, gpu).alignment < 4;
    const bool runs = is_few_vectors(op, gpu);
    ASSERT_EQ(runs, stated_few_vectors(op, odd_bf16, gpu));
    if (!runs) continue;
    ++run;
    const KernelLaunch launch = few_vectors_launch(op, operands(op), results(op));
    const bool rows = op.layout == Layout::nt;
    const double m = real(op.m), n = real(op.n), k = real(op.k), batch = real(op.batch),
                 g = real(up_to(op.m, rows ? 8 : 6));
    EXPECT_DOUBLE_EQ(stream_of(launch).elements, batch * k * n * g);
    EXPECT_DOUBLE_EQ(stream_of(launch).padded_elements, batch * k * n * m);
    EXPECT_DOUBLE_EQ(stream_of(launch).iterations,
                     rows ? k / 32.0 * (1.0 + 0.247 * m / g) : k / 8.0 * (1.0 + 0.008 * m / g));
    EXPECT_DOUBLE_EQ(launch.reads[1].requested, g * launch.reads[1].bytes);
    EXPECT_DOUBLE_EQ(launch.flops, 2.0 * batch * m * n * k);
    EXPECT_EQ(launch.grid[0] * launch.grid[1], up_to(op.n, rows ? 8 : 64) * static_cast<std::int64_t>(g) * op.batch);
    EXPECT_EQ(launch.written_bytes(), results(op)[0].bytes);
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(run, 500);
}

TEST(StatedScaledProducts, a_memset_a_scaling_the_product_in_pieces_and_the_bias) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (int i = 0; i < 5000; ++i) {
    Matmul op = drawn_sides(draws, 6000, 150, 8000);
    constexpr std::array kBounds{2, 4, 17, 90, 2400, 4000};
    for (std::int64_t* side : {&op.m, &op.n, &op.k})
      if (draws.index(3) == 0) *side = kBounds[draws.index(kBounds.size())] + static_cast<int>(draws.index(3)) - 1;
    if (draws.index(2) == 0) op.type = DType::fp32, op.layout = Layout::nt, op.bias = true, op.batch = 1;
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": " + text_of(op));
    const bool stated = op.type == DType::fp32 && op.bias && op.layout == Layout::nt && op.batch == 1 && op.m >= 17 &&
                        op.m <= 2400 && op.n >= 2 && op.n <= 90 && op.k >= 4 && op.k <= 4000;
    ASSERT_EQ(is_scaled_first(op, gpu), stated);
    if (!stated) continue;
    auto reads = operands(op);
    reads.push_back({.operand = 3, .bytes = 4.0 * real(op.n)});
    std::vector<KernelLaunch> launches;
    append_scaled_first(launches, op, reads, results(op));
    ASSERT_EQ(launches.size(), 4u);
    const double m = real(op.m), n = real(op.n), k = real(op.k), p = std::min(5.0, std::ceil(k / 8.0));
    EXPECT_EQ(launches[0].name, "Memset");
    for (const std::size_t pass : {1u, 3u}) {
      EXPECT_DOUBLE_EQ(stream_of(launches[pass]).elements, m * n);
      EXPECT_EQ(launches[pass].grid[0], up_to(op.m * op.n, 512));
      EXPECT_EQ(launches[pass].written_bytes(), 4.0 * m * n);
    }
    EXPECT_EQ(launches[1].read_bytes(), 4.0 * m * n);
    EXPECT_EQ(launches[3].read_bytes(), 4.0 * m * n + 4.0 * n) << "the bias comes last";
    const KernelLaunch& product = launches[2];
    const double rows = std::ceil(m / 32.0), columns = std::ceil(n / 32.0);
    EXPECT_EQ(product.blocks(), rows * columns * p);
    EXPECT_DOUBLE_EQ(stream_of(product).iterations, k / p);
    EXPECT_DOUBLE_EQ(stream_of(product).tail_steps, p - 1.0);
    EXPECT_DOUBLE_EQ(stream_of(product).elements, k * (columns * m + rows * n));
    EXPECT_DOUBLE_EQ(stream_of(product).padded_elements, k * rows * columns * 32.0 * 32.0);
    EXPECT_DOUBLE_EQ(product.flops, 2.0 * m * n * k);
    EXPECT_DOUBLE_EQ(product.reads[0].requested, columns * 4.0 * m * k);
    EXPECT_DOUBLE_EQ(product.reads[1].requested, rows * 4.0 * n * k);
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace ridgeline

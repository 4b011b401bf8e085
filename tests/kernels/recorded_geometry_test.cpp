// Grids and launches of single calls as recorded on an H200 (measurements/h200/calls, measurements/h200/foreign/ops).
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/lowering.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {
namespace {

std::vector<KernelLaunch> launches_of(const Op& op) {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  static const Software software = load_software("pytorch-2.11");
  return lower(op, gpu, software).launches;
}
/// Blocks, the other way, and threads of a block.
using Geometry3 = std::array<std::int64_t, 3>;
Geometry3 geometry(const KernelLaunch& launch) { return {launch.grid[0], launch.grid[1], launch.threads_per_block}; }

TEST(RecordedGeometry, softmax_over_other_dimensions_fills_the_chip_once) {
  const auto of = [](std::int64_t rows, std::int64_t cols, std::int64_t inner) {
    return geometry(
        launches_of(Softmax{.input = DType::fp32, .output = DType::fp32, .rows = rows, .cols = cols, .inner = inner})
            .back());
  };
  EXPECT_EQ(of(968, 3824, 968), (Geometry3{1, 1, 968}));
  EXPECT_EQ(of(50, 107576, 50), (Geometry3{1, 1, 800}));  // sixteen threads share out a column
  EXPECT_EQ(of(std::int64_t{4136} * 48, 6, 48), (Geometry3{3168, 1, 48}));
  EXPECT_EQ(of(440 * 32, 24, 32), (Geometry3{440, 1, 32}));
}

TEST(RecordedGeometry, softmax_of_few_long_columns_takes_the_latency_of_each_element) {
  const auto iterations = [](std::int64_t cols) {
    const auto launches =
        launches_of(Softmax{.input = DType::bf16, .output = DType::bf16, .rows = 968, .cols = cols, .inner = 968});
    return std::get<MemoryBoundWork>(launches.back().work).iterations;
  };
  EXPECT_DOUBLE_EQ(iterations(3824), 3.0 * 3824);
  EXPECT_DOUBLE_EQ(iterations(60), 3.0 * 60);
}

TEST(RecordedGeometry, many_long_rows_are_sorted_a_block_each) {
  const auto fp32 = launches_of(Sort{DType::fp32, 600, 26341, 0, 0});
  ASSERT_EQ(fp32.size(), 8U);  // copy, places, four digits of five bits and two of six
  EXPECT_EQ(fp32[1].grid[0], 15435);
  for (std::size_t i = 2; i < 8; ++i) EXPECT_EQ(geometry(fp32[i]), (Geometry3{600, 1, i < 6 ? 384 : 192}));
  EXPECT_EQ(launches_of(Sort{DType::bf16, 384, 15537, 0, 0}).size(), 5U);
  EXPECT_EQ(launches_of(Sort{DType::int64, 182, 4200, 0, 0}).size(), 13U);
}

TEST(RecordedGeometry, the_largest_of_long_rows_end_with_two_scans_over_blocks) {
  const auto launches = launches_of(Sort{DType::fp32, 3, 68171, 4, 0});
  EXPECT_EQ(launches.size(), 22U);
  EXPECT_EQ(launches[3].grid[0], 201);
}

TEST(RecordedGeometry, running_sums_down_columns_have_a_block_for_each_matrix) {
  Reduction op{ReductionKind::scan_rows, DType::fp32, 13, std::int64_t{18856} * 15};
  op.inner = 15;
  EXPECT_EQ(geometry(launches_of(op).back()), (Geometry3{18856, 1, 15}));
  op = {ReductionKind::scan_rows, DType::int64, 2, std::int64_t{592} * 136};
  EXPECT_EQ(geometry(launches_of(op).back()), (Geometry3{1, 158, 512}));
}

TEST(RecordedGeometry, reductions_are_vectorized_by_what_lies_side_by_side) {
  // 11 outputs side by side, of 4352 pieces: no vectors, though all outputs are a multiple of four.
  Reduction op{ReductionKind::sum_rows, DType::bf16, 4, std::int64_t{11} * 4352};
  op.inner = 11;
  EXPECT_EQ(geometry(launches_of(op).back()), (Geometry3{94, 1, 512}));
  // Nothing is added up: four outputs a thread.
  EXPECT_EQ(geometry(launches_of(Reduction{ReductionKind::sum_rows, DType::fp32, 1, 11963680}).back()),
            (Geometry3{23367, 1, 128}));
  // Elements along two dimensions: one a thread.
  op = {ReductionKind::sum_all, DType::bf16, 1, 16 * 184};
  op.scattered = true;
  EXPECT_EQ(geometry(launches_of(op).back()), (Geometry3{1, 1, 512}));
}

TEST(RecordedGeometry, searches_halve_the_sorted_row) {
  const auto search = [](std::int64_t sorted, std::int64_t values) {
    Pointwise op{.function = PointwiseFunction::search, .rows = 1, .cols = values, .input_count = 2};
    op.output = DType::int64;
    op.walked = {std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{sorted, 1})};
    return launches_of(op).back();
  };
  EXPECT_EQ(geometry(search(76635, 7095878)), (Geometry3{1024, 1, 1024}));
  EXPECT_EQ(geometry(search(66651, 638)), (Geometry3{1, 1, 638}));
  EXPECT_DOUBLE_EQ(std::get<MemoryBoundWork>(search(65536, 638).work).iterations, 16.0);
}

TEST(RecordedGeometry, functions_of_many_instructions_keep_them_under_strides) {
  const auto arithmetic = [](PointwiseFunction function) {
    Pointwise op{.function = function, .rows = 1000, .cols = 64, .input_count = 2, .walk = Walk::broadcast};
    return std::get<MemoryBoundWork>(launches_of(op).back().work).arithmetic;
  };
  EXPECT_EQ(arithmetic(PointwiseFunction::add), 0.0);
  EXPECT_GT(arithmetic(PointwiseFunction::power), 50.0);
}

}  // namespace
}  // namespace ridgeline

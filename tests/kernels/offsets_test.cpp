// Kernels that compute the offset of every element, and when PyTorch does without them.
#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/families.h"

namespace ridgeline {
namespace {

const Gpu& hopper() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu;
}

KernelLaunch only_launch(LoweredOp lowered) {
  EXPECT_EQ(lowered.launches.size(), 1u);
  return std::move(lowered.launches.front());
}

KernelLaunch add_row(std::int64_t rows, std::int64_t cols) {
  Pointwise add{
      .function = PointwiseFunction::add, .rows = rows, .cols = cols, .input_count = 2, .output = DType::bf16};
  add.inputs[0] = add.inputs[1] = DType::bf16;
  add.walk = Walk::broadcast_row;
  return only_launch(lower_pointwise(add, hopper(), Software{}));
}

const MemoryBoundWork& work_of(const KernelLaunch& launch) { return std::get<MemoryBoundWork>(launch.work); }

KernelLaunch copy_of(const Copy& op) { return only_launch(lower_copy(op, hopper(), Software{})); }

TEST(Offsets, a_row_added_to_a_single_row_is_contiguous) {
  EXPECT_EQ(add_row(1, 4096).grid[0], 4);
  EXPECT_EQ(add_row(2, 2048).grid[0], 8);
}

TEST(Offsets, a_block_skips_the_passes_behind_its_last_element) {
  EXPECT_EQ(work_of(add_row(2, 64)).iterations, 1.0);
  EXPECT_EQ(work_of(add_row(3, 43)).iterations, 2.0);
  EXPECT_EQ(work_of(add_row(2, 256)).iterations, 4.0);
  EXPECT_EQ(work_of(add_row(2, 4096)).iterations, 4.0);
}

TEST(Offsets, columns_of_a_transposed_matrix_share_lines_while_the_l1_holds_those_of_its_blocks) {
  const auto requested = [](std::int64_t rows, std::int64_t cols) {
    return copy_of({CopyKind::transpose, DType::bf16, rows, cols, 1}).reads[0].requested /
           static_cast<double>(rows * cols);
  };
  EXPECT_EQ(requested(4096, 512), 48.0);                  // a row of the result a block
  EXPECT_LT(requested(65536, 32), 4.0);                   // sixteen rows, whose neighbours share sectors
  EXPECT_LT(requested(128, 256), requested(65536, 256));  // one block an SM, or all it holds
  EXPECT_EQ(requested(65536, 256), 48.0);
}

TEST(Offsets, rows_that_stay_whole_are_cheaper_than_columns) {
  const double permuted = work_of(copy_of({CopyKind::permute, DType::bf16, 4096, 64, 1})).padded_elements;
  const double transposed = work_of(copy_of({CopyKind::transpose, DType::bf16, 4096, 64, 1})).padded_elements;
  EXPECT_EQ(permuted, 4096.0 * 64.0 / 32.0);  // a line for the 64 bytes of a warp
  EXPECT_GT(transposed, permuted);
}

TEST(Offsets, views_that_are_not_contiguous_are_concatenated_without_vectors) {
  const KernelLaunch plain = copy_of({CopyKind::concatenate, DType::bf16, 16384, 768, 3});
  const KernelLaunch strided = copy_of({CopyKind::concatenate_strided, DType::bf16, 16384, 768, 3});
  EXPECT_EQ(plain.threads_per_block, 128);
  EXPECT_EQ(strided.threads_per_block, 512);  // profiled: a grid of 264 x 3 blocks of 512 threads
  EXPECT_EQ(strided.grid[0], 264);
  EXPECT_EQ(strided.grid[1], 3);
  EXPECT_EQ(strided.read_bytes(), plain.read_bytes());
}

TEST(Offsets, dropout_without_vectors_draws_for_elements_it_has_not) {
  const auto draws = [](std::int64_t n) {
    return work_of(only_launch(lower_dropout({DType::fp32, n}, hopper(), Software{}))).padded_elements;
  };
  EXPECT_EQ(draws(1024), 256.0);
  EXPECT_GT(draws(1025), 1025.0);
}

}  // namespace
}  // namespace ridgeline

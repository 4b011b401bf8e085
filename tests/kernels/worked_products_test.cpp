// Launches of tiled products worked out by hand: from a tile that is given, and from the tile that a recording names,
// so that there is nothing to choose.
//
// 300 x 200 x 120 in 16 bits: operands of 72,000 and 48,000 bytes, 120,000 of results. In tiles of 128 x 64 three rows
// by four columns, each of which asks for whole panels.
#include <gtest/gtest.h>

#include <stdexcept>

#include "sim/kernels/products/gemm_launch.h"
#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_products {
namespace {

using testing_support::expect_kernels;
using testing_support::made_up_chip;
using testing_support::text_of;
using Family = GemmWork::Family;

GemmWork problem_of(Family family, DType type) {
  return {.family = family, .type = type, .m = 300, .n = 200, .k = 120, .layout = static_cast<int>(Layout::nt)};
}
TileChoice tile_of_choice() {
  return {.tile = {.m = 128, .n = 64, .k = 32, .stages = 3, .first_stages = 4, .blocks_per_sm = 2},
          .threads = 160,
          .registers = 99,
          .shared_bytes = 30000};
}
std::string launches_text(const GemmWork& problem, int splits, bool stream_k = false, bool counter = false,
                          std::string_view kind = "gemm") {
  const TileChoice choice = tile_of_choice();
  GemmSelection selection{
      .tile = choice.tile, .family = problem.family, .choice = &choice, .splits = splits, .clears_counter = counter};
  selection.tile.stream_k = stream_k;
  LoweredOp made;
  append_gemm(made.launches, problem, made_up_chip(), selection,
              {{.operand = 0, .bytes = 72000.0}, {.operand = 1, .bytes = 48000.0}, {.operand = 2, .bytes = 400.0}},
              {{.operand = 3, .bytes = 120000.0}}, kind);
  return text_of(made);
}

TEST(WorkedProducts, a_tile_is_a_block_and_asks_for_whole_panels) {
  EXPECT_EQ(launches_text(problem_of(Family::mma_sync, DType::bf16), 1), R"(
sm90_tensorop_bf16_gemm_64x128_32x3_tn_align8 contraction bf16 mma: 3,4 x 160, 99 registers shared 30000
  mma_sync bf16 300x200x120 nt by 16 bytes, tile 128x64x32 stages 3 built with 4 an SM 2; flops 14400000 #0:72000/288000 #1:48000/144000 #2:400 -> #3:120000)");
  EXPECT_EQ(launches_text(problem_of(Family::simt, DType::fp32), 1), R"(
sm90_sgemm_64x128x32_tn contraction fp32 cores: 3,4 x 160, 99 registers shared 30000
  simt fp32 300x200x120 nt by 16 bytes, tile 128x64x32 stages 3 built with 4 an SM 2; flops 14400000 #0:72000/576000 #1:48000/288000 #2:400 -> #3:120000)");
  GemmWork batched = problem_of(Family::mma_sync, DType::fp16);
  batched.batch = 5, batched.layout = static_cast<int>(Layout::nn), batched.alignment = 4;
  EXPECT_EQ(launches_text(batched, 1), R"(
sm90_tensorop_fp16_gemm_64x128_32x3_nn_align2 contraction fp16 mma: 3,4,5 x 160, 99 registers shared 30000
  mma_sync fp16 5 of 300x200x120 nn by 4 bytes, tile 128x64x32 stages 3 built with 4 an SM 2; flops 72000000 #0:72000/1440000 #1:48000/720000 #2:400 -> #3:120000)");
}

// 12 tiles of ten SMs: ten persistent blocks.
TEST(WorkedProducts, persistent_kernels_have_a_block_an_sm_at_most) {
  EXPECT_EQ(launches_text(problem_of(Family::wgmma, DType::bf16), 1, false, true), R"(
Memset contraction fp32 no pipe: 1 x 128, 32 registers
  memset 4; ->
nvjet_sm90_bf16_64x128_32x3_tn contraction bf16 wgmma: 10 x 160, 99 registers shared 30000
  wgmma bf16 300x200x120 nt by 16 bytes, tile 128x64x32 stages 3 built with 4 an SM 2; flops 14400000 #0:72000/288000 #1:48000/144000 #2:400 -> #3:120000)");
  GemmWork few = problem_of(Family::wgmma, DType::tf32);
  few.m = 200, few.layout = static_cast<int>(Layout::tn);
  EXPECT_EQ(launches_text(few, 1), R"(
gemm_sm90_tf32_64x128_32x3_nt contraction tf32 wgmma: 8 x 160, 99 registers shared 30000
  wgmma tf32 200x200x120 tn by 16 bytes, tile 128x64x32 stages 3 built with 4 an SM 2; flops 9600000 #0:72000/384000 #1:48000/192000 #2:400 -> #3:120000)");
  few.m = 100, few.layout = static_cast<int>(Layout::tt);
  EXPECT_EQ(launches_text(few, 1, true, true), R"(
Memset contraction fp32 no pipe: 1 x 128, 32 registers
  memset 4; ->
gemm_sm90_tf32_64x128_32x3_tt contraction tf32 wgmma: 10 x 160, 99 registers shared 30000
  wgmma tf32 100x200x120 tt by 16 bytes, tile 128x64x32 stages 3 built with 4 an SM 2 shares steps; flops 4800000 #0:72000/192000 #1:48000/96000 #2:400 -> #3:120000)");
  EXPECT_EQ(launches_text(few, 2), R"(
gemm_sm90_tf32_64x128_32x3_splitK_tt contraction tf32 wgmma: 8 x 160, 99 registers shared 30000
  wgmma tf32 100x200x120 tt by 16 bytes, tile 128x64x32 stages 3 splits 2 built with 4 an SM 2; flops 4800000 #0:72000/192000 #1:48000/96000 #2:400 -> t:160000
splitKreduce contraction fp32 no pipe: 10 x 512, 32 registers
  wgmma tf32 100x200x120 tt by 16 bytes, tile 128x64x32 stages 3 splits 2 built with 4 an SM 2 adds splits; t:160000 -> #3:120000 (no gap))");
}

TEST(WorkedProducts, splits_write_parts_that_a_second_kernel_adds_up) {
  EXPECT_EQ(launches_text(problem_of(Family::mma_sync, DType::bf16), 3), R"(
sm90_tensorop_bf16_gemm_64x128_32x3_tn_align8_splitK contraction bf16 mma: 3,4,3 x 160, 99 registers shared 30000
  mma_sync bf16 300x200x120 nt by 16 bytes, tile 128x64x32 stages 3 splits 3 built with 4 an SM 2; flops 14400000 #0:72000/288000 #1:48000/144000 #2:400 -> t:720000
splitKreduce contraction fp32 no pipe: 30 x 512, 32 registers
  mma_sync bf16 300x200x120 nt by 16 bytes, tile 128x64x32 stages 3 splits 3 built with 4 an SM 2 adds splits; t:720000 -> #3:120000 (no gap))");
  EXPECT_EQ(launches_text(problem_of(Family::simt, DType::fp32), 3, true, true), R"(
Memset contraction fp32 no pipe: 1 x 128, 32 registers
  memset 4; ->
sm90_sgemm_64x128x32_tn_splitK contraction fp32 cores: 3,4,3 x 160, 99 registers shared 30000
  simt fp32 300x200x120 nt by 16 bytes, tile 128x64x32 stages 3 splits 3 built with 4 an SM 2 shares steps; flops 14400000 #0:72000/576000 #1:48000/288000 #2:400 -> #3:120000)");
  EXPECT_EQ(launches_text(problem_of(Family::wgmma, DType::fp16), 5, false, false, "conv"), R"(
conv_sm90_fp16_64x128_32x3_splitK_tn contraction fp16 wgmma: 10 x 160, 99 registers shared 30000
  wgmma fp16 300x200x120 nt by 16 bytes, tile 128x64x32 stages 3 splits 5 built with 4 an SM 2; flops 14400000 #0:72000/288000 #1:48000/144000 #2:400 -> t:1200000
splitKreduce contraction fp32 no pipe: 30 x 512, 32 registers
  wgmma fp16 300x200x120 nt by 16 bytes, tile 128x64x32 stages 3 splits 5 built with 4 an SM 2 adds splits; t:1200000 -> #3:120000 (no gap))");
}

// 9/16 of a sparse operand are stored, half of the FLOPs done.
TEST(WorkedProducts, a_sparse_operand_is_asked_for_as_it_is_stored) {
  GemmWork sparse = problem_of(Family::mma_sync, DType::bf16);
  sparse.sparse = SparseOperand::a;
  EXPECT_EQ(launches_text(sparse, 1), R"(
sm90_tensorop_bf16_gemm_64x128_32x3_tn_align8 contraction bf16 mma: 3,4 x 160, 99 registers shared 30000
  mma_sync bf16 300x200x120 nt by 16 bytes, tile 128x64x32 stages 3 built with 4 an SM 2 sparse A; flops 7200000 #0:72000/162000 #1:48000/144000 #2:400 -> #3:120000)");
  sparse.sparse = SparseOperand::b;
  EXPECT_EQ(launches_text(sparse, 1), R"(
sm90_tensorop_bf16_gemm_64x128_32x3_tn_align8 contraction bf16 mma: 3,4 x 160, 99 registers shared 30000
  mma_sync bf16 300x200x120 nt by 16 bytes, tile 128x64x32 stages 3 built with 4 an SM 2 sparse B; flops 7200000 #0:72000/288000 #1:48000/81000 #2:400 -> #3:120000)");
}

// k counts pairs of operands.
TEST(WorkedProducts, operands_of_eight_bits_count_twice) {
  GemmWork scaled = problem_of(Family::wgmma, DType::bf16);
  scaled.scaling = Scaling::tensor;
  EXPECT_EQ(launches_text(scaled, 1), R"(
nvjet_sm90_fp8_64x128_64x3_tn contraction bf16 wgmma: 10 x 160, 99 registers shared 30000
  wgmma bf16 300x200x120 nt by 16 bytes, tile 128x64x32 stages 3 built with 4 an SM 2 scaling 2; flops 28800000 #0:72000/288000 #1:48000/144000 #2:400 -> #3:120000)");
  scaled.scaling = Scaling::rows_fast;
  EXPECT_EQ(launches_text(scaled, 1), R"(
nvjet_sm90_fp8_64x128_64x3_ovscale_tn contraction bf16 wgmma: 10 x 160, 99 registers shared 30000
  wgmma bf16 300x200x120 nt by 16 bytes, tile 128x64x32 stages 3 built with 4 an SM 2 scaling 3; flops 28800000 #0:72000/288000 #1:48000/144000 #2:400 -> #3:120000)");
}

TEST(WorkedProducts, without_a_kernel_there_is_no_launch) {
  LoweredOp made;
  EXPECT_THROW(append_gemm(made.launches, problem_of(Family::simt, DType::fp32), made_up_chip(), {}, {}, {}),
               std::invalid_argument);
}

// A block of 512 threads adds up 2,048 results.
TEST(WorkedProducts, a_reduction_reads_every_part) {
  GemmWork work = problem_of(Family::simt, DType::fp16);
  work.split_k = 7;
  EXPECT_EQ("\n" + text_of(split_reduction(work, {{4, 5.0}})), R"(
splitKreduce contraction fp32 no pipe: 30 x 512, 32 registers
  simt fp16 300x200x120 nt by 16 bytes, tile 128x128x8 stages 2 splits 7 adds splits; t:1680000 -> #4:5 (no gap))");
  work.batch = 3, work.m = 16, work.n = 43;  // 2,064 results
  EXPECT_EQ(split_reduction(work, {}).grid[0], 2);
  work.n = 42;
  EXPECT_EQ(split_reduction(work, {}).grid[0], 1);
  EXPECT_EQ(split_reduction(work, {}).reads[0].bytes, 4.0 * 7 * 2016);
}

Matmul recorded(DType type, LibraryKernel ran, Layout layout = Layout::nt) {
  return {.type = type, .batch = 1, .m = 300, .n = 200, .k = 1200, .layout = layout, .ran = ran};
}
using Instructions = LibraryKernel::Instructions;

// The menu has 128 x 64 of tf32 with k-steps of 32 in 3 and in 6 stages: what the name says decides, a name that says
// neither takes the first.
TEST(WorkedProducts, a_recorded_tile_is_that_of_the_menu_which_its_name_describes) {
  expect_kernels(recorded(DType::tf32, {Instructions::mma_sync, 128, 64, 32, 6, 1}), R"(
sm90_tensorop_tf32_gemm_64x128_32x6_tn_align4 contraction tf32 mma: 3,4 x 128, 168 registers shared 147456
  mma_sync tf32 300x200x1200 nt by 16 bytes, tile 128x64x32 stages 6 built with 6; flops 144000000 #0:1440000/5760000 #1:960000/2880000 -> #2:240000)");
  expect_kernels(recorded(DType::tf32, {Instructions::mma_sync, 128, 64, 32, 3, 1}), R"(
sm90_tensorop_tf32_gemm_64x128_32x3_tn_align4 contraction tf32 mma: 3,4 x 128, 168 registers shared 73728
  mma_sync tf32 300x200x1200 nt by 16 bytes, tile 128x64x32 stages 3 built with 3 an SM 3; flops 144000000 #0:1440000/5760000 #1:960000/2880000 -> #2:240000)");
  expect_kernels(recorded(DType::tf32, {Instructions::mma_sync, 128, 128, 16, 0, 1}), R"(
sm90_tensorop_tf32_gemm_128x128_16x4_tn_align4 contraction tf32 mma: 3,2 x 128, 213 registers shared 65536
  mma_sync tf32 300x200x1200 nt by 16 bytes, tile 128x128x16 stages 4 built with 4 an SM 2; flops 144000000 #0:1440000/2880000 #1:960000/2880000 -> #2:240000)");
  expect_kernels(recorded(DType::tf32, {Instructions::mma_sync, 128, 128, 0, 5, 1}), R"(
sm90_tensorop_tf32_gemm_128x128_32x5_tn_align4 contraction tf32 mma: 3,2 x 128, 226 registers shared 163840
  mma_sync tf32 300x200x1200 nt by 16 bytes, tile 128x128x32 stages 5 built with 5; flops 144000000 #0:1440000/2880000 #1:960000/2880000 -> #2:240000)");
  expect_kernels(recorded(DType::bf16, {Instructions::wgmma, 192, 96, 64, 0, 0}), R"(
nvjet_sm90_bf16_96x192_64x5_tn contraction bf16 wgmma: 6 x 384, 168 registers shared 188416
  wgmma bf16 300x200x1200 nt by 16 bytes, tile 192x96x64 stages 5 built with 5; flops 144000000 #0:720000/2160000 #1:480000/960000 -> #2:120000)");
}

// Tiles that no menu has: 64 threads and more, so that a thread has 128 results at most (64 on the CUDA cores) or there
// are 256; its results and 64 other registers, 254 at most.
TEST(WorkedProducts, a_recorded_tile_that_no_menu_has_is_made_of_its_name) {
  expect_kernels(recorded(DType::fp16, {Instructions::mma_sync, 72, 48, 0, 0, 1}), R"(
sm90_tensorop_fp16_gemm_48x72_32x3_tn_align8 contraction fp16 mma: 5,5 x 64, 118 registers shared 23040
  mma_sync fp16 300x200x1200 nt by 16 bytes, tile 72x48x32 stages 3 built with 3 an SM 8; flops 144000000 #0:720000/3600000 #1:480000/2400000 -> #2:120000)");
  expect_kernels(recorded(DType::tf32, {Instructions::mma_sync, 136, 128, 16, 4, 1}), R"(
sm90_tensorop_tf32_gemm_128x136_16x4_tn_align4 contraction tf32 mma: 3,2 x 256, 132 registers shared 67584
  mma_sync tf32 300x200x1200 nt by 16 bytes, tile 136x128x16 stages 4 built with 4; flops 144000000 #0:1440000/2880000 #1:960000/2880000 -> #2:240000)");
  expect_kernels(recorded(DType::fp16, {Instructions::mma_sync, 256, 248, 32, 2, 1}), R"(
sm90_tensorop_fp16_gemm_248x256_32x2_tn_align8 contraction fp16 mma: 2 x 256, 254 registers shared 64512
  mma_sync fp16 300x200x1200 nt by 16 bytes, tile 256x248x32 stages 2 built with 2; flops 144000000 #0:720000 #1:480000/960000 -> #2:120000)");
  expect_kernels(recorded(DType::fp32, {Instructions::simt, 72, 64, 0, 0, 1}), R"(
sm90_sgemm_64x72x8_tn contraction fp32 cores: 5,4 x 128, 100 registers shared 13056
  simt fp32 300x200x1200 nt by 16 bytes, tile 72x64x8 stages 3 built with 3 an SM 4; flops 144000000 #0:1440000/5760000 #1:960000/4800000 -> #2:240000)");
  expect_kernels(recorded(DType::fp32, {Instructions::simt, 64, 64, 16, 2, 1}), R"(
sm90_sgemm_64x64x16_tn contraction fp32 cores: 5,4 x 64, 128 registers shared 16384
  simt fp32 300x200x1200 nt by 16 bytes, tile 64x64x16 stages 2 built with 2 an SM 8; flops 144000000 #0:1440000/5760000 #1:960000/4800000 -> #2:240000)");
  expect_kernels(recorded(DType::bf16, {Instructions::wgmma, 72, 64, 0, 0, 0}), R"(
nvjet_sm90_bf16_64x72_32x3_tn contraction bf16 wgmma: 10 x 384, 168 registers shared 30208
  wgmma bf16 300x200x1200 nt by 16 bytes, tile 72x64x32 stages 3 built with 3; flops 144000000 #0:720000/2880000 #1:480000/2400000 -> #2:120000)");
}

// Splits that the name does not say a second kernel adds up the kernel adds up itself.
TEST(WorkedProducts, recorded_splits_are_taken_as_they_were) {
  expect_kernels(recorded(DType::fp16, {Instructions::mma_sync, 72, 48, 0, 0, 3, true}), R"(
sm90_tensorop_fp16_gemm_48x72_32x3_tn_align8_splitK contraction fp16 mma: 5,5,3 x 64, 118 registers shared 23040
  mma_sync fp16 300x200x1200 nt by 16 bytes, tile 72x48x32 stages 3 splits 3 built with 3 an SM 8; flops 144000000 #0:720000/3600000 #1:480000/2400000 -> t:720000
splitKreduce contraction fp32 no pipe: 30 x 512, 32 registers
  mma_sync fp16 300x200x1200 nt by 16 bytes, tile 72x48x32 stages 3 splits 3 built with 3 an SM 8 adds splits; t:720000 -> #2:120000 (no gap))");
  expect_kernels(recorded(DType::fp16, {Instructions::mma_sync, 72, 48, 0, 0, 3}), R"(
Memset contraction fp32 no pipe: 1 x 128, 32 registers
  memset 4; ->
sm90_tensorop_fp16_gemm_48x72_32x3_tn_align8_splitK contraction fp16 mma: 5,5,3 x 64, 118 registers shared 23040
  mma_sync fp16 300x200x1200 nt by 16 bytes, tile 72x48x32 stages 3 splits 3 built with 3 an SM 8 shares steps; flops 144000000 #0:720000/3600000 #1:480000/2400000 -> #2:120000)");
  const auto splits_of_recorded = [](std::int64_t splits, std::int64_t k) {
    Matmul op = recorded(DType::fp16, {Instructions::mma_sync, 72, 48, 0, 0, splits});
    op.k = k;
    for (const KernelLaunch& launch : lower(op, made_up_chip(), {}).launches)
      if (const auto* work = std::get_if<GemmWork>(&launch.work)) return work->split_k;
    return 0;
  };
  EXPECT_EQ(splits_of_recorded(12, 96), 12) << "eight values of k each";
  EXPECT_NE(splits_of_recorded(13, 96), 13);
  EXPECT_EQ(splits_of_recorded(1, 7), 1);
}

TEST(WorkedProducts, names_that_no_library_has_are_not_taken) {
  const auto runs = [](DType type, LibraryKernel ran) {
    for (const KernelLaunch& launch : lower(recorded(type, ran), made_up_chip(), {}).launches)
      if (const auto* work = std::get_if<GemmWork>(&launch.work);
          work && work->tile_m == ran.m && work->tile_n == ran.n)
        return true;
    return false;
  };
  constexpr auto kMma = Instructions::mma_sync;
  EXPECT_TRUE(runs(DType::fp16, {kMma, 72, 48}));
  EXPECT_TRUE(runs(DType::fp16, {kMma, 8, 8}));
  EXPECT_TRUE(runs(DType::fp16, {kMma, 8, 512}));
  EXPECT_FALSE(runs(DType::fp16, {kMma, 72, 520}));
  EXPECT_FALSE(runs(DType::fp16, {kMma, 520, 72}));
  EXPECT_FALSE(runs(DType::fp16, {kMma, 68, 72}));
  EXPECT_FALSE(runs(DType::fp16, {kMma, 72, 68}));
  EXPECT_FALSE(runs(DType::fp16, {kMma, 4, 72}));
  EXPECT_TRUE(runs(DType::fp16, {kMma, 8, 16, 512, 2}));
  EXPECT_FALSE(runs(DType::fp16, {kMma, 8, 16, 513, 2}));
  EXPECT_FALSE(runs(DType::fp16, {kMma, 8, 16, -1, 2}));
  EXPECT_TRUE(runs(DType::fp16, {kMma, 8, 16, 16, 64}));
  EXPECT_FALSE(runs(DType::fp16, {kMma, 8, 16, 16, 65}));
  EXPECT_FALSE(runs(DType::fp16, {kMma, 8, 16, 16, -1}));
  EXPECT_FALSE(runs(DType::fp16, {Instructions::none, 72, 48}));
  EXPECT_FALSE(runs(DType::fp16, {Instructions::simt, 72, 48})) << "16 bits on the CUDA cores";
  EXPECT_FALSE(runs(DType::fp32, {Instructions::wgmma, 72, 64}));
  EXPECT_FALSE(runs(DType::fp32, {kMma, 72, 48})) << "fp32 on tensor cores";
  EXPECT_TRUE(runs(DType::tf32, {Instructions::simt, 72, 48}));
}

}  // namespace
}  // namespace ridgeline::worked_products

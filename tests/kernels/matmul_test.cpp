#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "sim/kernels/products/gemm_selection.h"

namespace ridgeline {
namespace {

using Family = GemmWork::Family;

GemmWork problem(const char* gpu, DType type, std::int64_t n = 1024) {
  return gemm_problem(Matmul{.type = type, .batch = 1, .m = 1024, .n = n, .k = 1024, .layout = Layout::nt},
                      load_gpu(gpu));
}

TEST(GemmProblem, takes_the_pipe_that_the_chip_has_for_the_type) {
  EXPECT_EQ(problem("nvidia-h200-sxm-141gb", DType::bf16).family, Family::wgmma);
  EXPECT_EQ(problem("nvidia-h200-sxm-141gb", DType::fp32).family, Family::simt);
  EXPECT_EQ(problem("nvidia-a100-sxm4-80gb", DType::tf32).family, Family::mma_sync);
  EXPECT_EQ(problem("nvidia-v100-sxm2-16gb", DType::fp16).family, Family::mma_sync);
  EXPECT_EQ(problem("nvidia-v100-sxm2-16gb", DType::bf16).family, Family::simt);  // no bf16 tensor cores
  EXPECT_EQ(problem("nvidia-t4", DType::tf32).family, Family::simt);              // tf32 is fp32 before Ampere
}

TEST(GemmProblem, judges_alignment_on_leading_dimensions) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto alignment = [&](Layout layout, std::int64_t m, std::int64_t n, std::int64_t k) {
    return gemm_problem(Matmul{.type = DType::bf16, .batch = 1, .m = m, .n = n, .k = k, .layout = layout}, gpu)
        .alignment;
  };
  EXPECT_EQ(alignment(Layout::nt, 1021, 1024, 1024), 16);  // rows of A may be any number
  EXPECT_EQ(alignment(Layout::tn, 1021, 1024, 1024), 2);   // where A is stored transposed they are its pitch
  EXPECT_EQ(alignment(Layout::tn, 1024, 1024, 1021), 16);
  EXPECT_EQ(alignment(Layout::nt, 1024, 1026, 1024), 4);  // the output's pitch counts too
  EXPECT_EQ(alignment(Layout::nt, 1024, 1028, 1024), 8);
  EXPECT_EQ(alignment(Layout::nn, 1024, 1, 1024), 16);  // a single column has no pitch
  EXPECT_EQ(problem("nvidia-h200-sxm-141gb", DType::bf16, 1026).family, Family::mma_sync);  // no TMA for it
}

TEST(MatmulLowering, clears_a_tile_counter_only_beyond_two_tiles_an_sm) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto launches = [&](std::int64_t batch) {
    return lower(Matmul{.type = DType::bf16, .batch = batch, .m = 64, .n = 64, .k = 64, .layout = Layout::nt}, gpu,
                 Software{})
        .launches;
  };
  EXPECT_EQ(launches(132).size(), 1u);
  ASSERT_EQ(launches(4096).size(), 2u);
  EXPECT_EQ(launches(4096).front().name, "Memset");
}

TEST(MatmulLowering, splits_long_inner_dimensions_over_idle_sms) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto launches =
      lower(Matmul{.type = DType::bf16, .batch = 1, .m = 128, .n = 128, .k = 16384, .layout = Layout::nt}, gpu,
            Software{})
          .launches;
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_TRUE(launches[1].follows_without_gap);
  EXPECT_EQ(launches[0].writes.front().operand, Access::kTemporary);
  EXPECT_DOUBLE_EQ(launches[0].written_bytes(), launches[1].read_bytes());
}

TEST(MatmulLowering, a_fused_bias_is_read_and_its_product_never_split) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Matmul op{.type = DType::bf16, .batch = 1, .m = 128, .n = 128, .k = 16384, .layout = Layout::nt, .bias = true};
  const auto launches = lower(op, gpu, Software{}).launches;
  ASSERT_EQ(launches.size(), 1u);
  ASSERT_EQ(launches[0].reads.size(), 3u);
  EXPECT_DOUBLE_EQ(launches[0].reads[2].bytes, 256.0);
  Software older;
  older.addmm_fuses_bias = false;
  EXPECT_GT(lower(op, gpu, older).launches.size(), launches.size());
}

TEST(MatmulLowering, states_flops_and_bytes_of_the_problem_not_of_its_tiles) {
  const Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  const auto launches =
      lower(Matmul{.type = DType::fp32, .batch = 3, .m = 100, .n = 200, .k = 300, .layout = Layout::nn}, gpu,
            Software{})
          .launches;
  double flops = 0.0;
  for (const KernelLaunch& launch : launches) flops += launch.flops;
  EXPECT_DOUBLE_EQ(flops, 2.0 * 3 * 100 * 200 * 300);
  EXPECT_DOUBLE_EQ(launches.front().read_bytes(), 4.0 * 3 * (100 * 300 + 300 * 200));
  EXPECT_DOUBLE_EQ(launches.back().written_bytes(), 4.0 * 3 * 100 * 200);
  for (const Access& access : launches.front().reads) EXPECT_GE(access.requested, access.bytes);
}

TEST(MatmulLowering, refuses_empty_operands) {
  EXPECT_THROW(static_cast<void>(lower(Matmul{.type = DType::fp32, .batch = 1, .m = 0, .n = 8, .k = 8},
                                       load_gpu("nvidia-t4"), Software{})),
               std::invalid_argument);
}

TEST(RecordedKernel, runs_where_its_instructions_are_and_nowhere_else) {
  Matmul op{.type = DType::bf16, .batch = 1, .m = 1024, .n = 1024, .k = 1024, .layout = Layout::nt};
  op.ran = {.instructions = LibraryKernel::Instructions::mma_sync, .m = 64, .n = 128, .k = 64, .stages = 6};
  const auto tile = [&](const char* gpu) {
    const auto launches = lower(op, load_gpu(gpu), {}).launches;
    const auto& work = std::get<GemmWork>(launches.front().work);
    return fmt::format("{} {}x{}", work.family == Family::mma_sync ? "mma" : "other", work.tile_m, work.tile_n);
  };
  EXPECT_EQ(tile("nvidia-h200-sxm-141gb"), "mma 64x128");
  EXPECT_EQ(tile("nvidia-a100-sxm4-80gb"), "mma 64x128");
  op.ran.instructions = LibraryKernel::Instructions::wgmma;
  EXPECT_EQ(tile("nvidia-h200-sxm-141gb"), "other 64x128");
  const std::string recorded = tile("nvidia-a100-sxm4-80gb");
  op.ran = {};
  EXPECT_EQ(recorded, tile("nvidia-a100-sxm4-80gb")) << "an A100 has no wgmma: its library chooses";
}

TEST(RecordedKernel, of_summed_splits_is_followed_by_their_sum) {
  Matmul op{.type = DType::bf16, .batch = 1, .m = 128, .n = 128, .k = 16384, .layout = Layout::nt};
  op.ran = {.instructions = LibraryKernel::Instructions::mma_sync, .m = 128, .n = 128, .k = 32, .stages = 5};
  const Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  EXPECT_EQ(lower(op, gpu, {}).launches.size(), 1U);
  op.ran.summed = true;
  const auto launches = lower(op, gpu, {}).launches;
  ASSERT_EQ(launches.size(), 2U);
  EXPECT_EQ(launches.back().name, "splitKreduce");
}

// A recording may name any tile: one that no library has is as if none were named.
TEST(RecordedKernel, of_a_tile_that_no_library_has_is_not_taken) {
  std::mt19937_64 random(7);
  constexpr std::array<std::int64_t, 9> sides{
      1, 7, 64, 128, 520, 100000, std::int64_t{1} << 31, (std::int64_t{1} << 33) + 64, -64};
  const auto any = [&] { return sides[random() % sides.size()]; };
  const auto names = [](const std::vector<KernelLaunch>& launches) {
    std::string all;
    for (const KernelLaunch& launch : launches)
      all += fmt::format("{} {} {}, ", launch.name, launch.blocks(), launch.shared_bytes_per_block);
    return all;
  };
  Matmul op{.type = DType::fp16, .batch = 1, .m = 128, .n = 768, .k = 256, .layout = Layout::nt};
  for (const char* name : {"nvidia-h200-sxm-141gb", "nvidia-a100-sxm4-80gb", "nvidia-t4"}) {
    const Gpu gpu = load_gpu(name);
    op.ran = {};
    const std::string chosen = names(lower(op, gpu, {}).launches);
    for (int i = 0; i < 200; ++i) {
      op.ran = {.instructions = static_cast<LibraryKernel::Instructions>(1 + random() % 3),
                .m = any(),
                .n = any(),
                .k = any(),
                .stages = any()};
      const bool possible = std::max({op.ran.m, op.ran.n, op.ran.k, op.ran.stages}) <= 512 && op.ran.k >= 0 &&
                            op.ran.stages >= 0 && op.ran.stages <= 64 && std::min(op.ran.m, op.ran.n) >= 8;
      const std::string taken = names(lower(op, gpu, {}).launches);
      if (!possible) {
        EXPECT_EQ(taken, chosen) << op.ran.m << " " << op.ran.n << " " << op.ran.k << " " << op.ran.stages;
      }
    }
  }
}

}  // namespace
}  // namespace ridgeline

// Which generation's kernels multiply tf32 on Hopper, as docs/model/product-choice.md has it: a share of products keeps
// to the older ones. With one kernel of each generation the expected time says which share that is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/kernels/products/gemm_selection.h"
#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_generations {
namespace {

/// Hopper with one kernel of wgmma and one of mma.sync, which is much slower.
Gpu two_kernels() {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  gpu.gemm.replace = true;
  gpu.gemm.tiles = {{GemmClass::wgmma_tf32, 128, 128, 32, 4, 12, 168, 135168},
                    {GemmClass::mma_tf32, 32, 32, 8, 2, 1, 128, 4096},
                    {GemmClass::wgmma_half, 128, 128, 64, 4, 12, 168, 135168},
                    {GemmClass::mma_half, 32, 32, 16, 2, 1, 128, 4096}};
  return gpu;
}
GemmWork problem_of(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout, DType type = DType::tf32) {
  return gemm_problem({.type = type, .m = m, .n = n, .k = k, .layout = layout}, two_kernels());
}

struct Shared {
  double share = 0;
  bool older_shown = false;
};
Shared share_of(const GemmWork& problem) {
  const Gpu gpu = two_kernels();
  const GpuMenus menus(gpu);
  const GemmSelection both = select_gemm(problem, gpu, menus);
  GemmWork before = problem;
  before.family = GemmWork::Family::mma_sync;
  const auto alone = [&](const GemmWork& work) {
    const GemmClass kernels = gemm_class_of(work, gpu);
    return select_gemm(work, gpu, gemm_constants(kernels), menus.of(kernels, false)).expected;
  };
  const double newer = alone(problem), older = alone(before);
  EXPECT_GT(older, 1.05 * newer);
  return {(both.expected - newer) / (older - newer), both.family == GemmWork::Family::mma_sync};
}

TEST(WorkedGenerations, small_short_and_transposed_products_of_tf32_keep_to_the_older_kernels) {
  const auto expect_share = [](std::int64_t m, std::int64_t n, std::int64_t k, Layout layout, double score) {
    const Shared shared = share_of(problem_of(m, n, k, layout));
    const double share = 1.0 / (1.0 + std::exp(-score));
    EXPECT_NEAR(shared.share, share, 1e-6) << m << ' ' << n << ' ' << k << ' ' << static_cast<int>(layout);
    EXPECT_EQ(shared.older_shown, share >= 0.5);
  };
  // 2^30 multiply-adds are 2.69 doublings above 27.31, at 1.43 each; sums of 512 one above 8, at 1.74.
  expect_share(1024, 2048, 512, Layout::nt, 1.43 * (27.31 - 30.0) + 1.74 * (8.0 - 9.0));
  expect_share(1024, 2048, 512, Layout::nn, 1.43 * (27.31 - 30.0) + 1.74 * (8.0 - 9.0) + 4.55);
  expect_share(1024, 2048, 512, Layout::tn, 1.43 * (27.31 - 30.0) + 4.97);
  expect_share(1024, 2048, 512, Layout::tt, 1.43 * (27.31 - 30.0) + 4.97);
  expect_share(1024, 2048, 128, Layout::nt, 1.43 * (27.31 - 28.0) + 1.74 * (8.0 - 7.0));
  expect_share(4096, 4096, 2048, Layout::nn, 1.43 * (27.31 - 35.0) + 1.74 * (8.0 - 11.0) + 4.55);
  expect_share(4096, 4096, 2048, Layout::tn, 1.43 * (27.31 - 35.0) + 4.97);
}

TEST(WorkedGenerations, those_of_convolutions_go_less_by_size) {
  const auto expect_share = [](std::int64_t m, std::int64_t n, std::int64_t k, Layout layout, double share) {
    GemmWork problem = problem_of(m, n, k, layout);
    problem.of_convolution = true;
    const Shared shared = share_of(problem);
    EXPECT_NEAR(shared.share, std::clamp(share, 0.0, 1.0), 1e-6) << static_cast<int>(layout);
    EXPECT_EQ(shared.older_shown, share >= 0.5);
  };
  expect_share(1024, 2048, 256, Layout::nt, 0.1 * (28.69 - 29.0));
  expect_share(1024, 1024, 128, Layout::nt, 0.1 * (28.69 - 27.0));
  expect_share(1024, 2048, 512, Layout::nn, 0.1 * (28.69 - 30.0) + 0.483);
  expect_share(1024, 2048, 512, Layout::tn, 0.1 * (28.69 - 30.0) + 0.475);
  expect_share(1024, 2048, 512, Layout::tt, 0.1 * (28.69 - 30.0) + 0.475);
  expect_share(1024, 1024, 128, Layout::nn, 0.1 * (28.69 - 27.0) + 0.483);
}

TEST(WorkedGenerations, sixteen_bits_take_the_older_kernels_where_they_are_faster_alone) {
  EXPECT_NEAR(share_of(problem_of(1024, 2048, 512, Layout::nt, DType::bf16)).share, 0.0, 1e-9);
  EXPECT_NEAR(share_of(problem_of(256, 256, 64, Layout::tn, DType::fp16)).share, 0.0, 1e-9);
  const Gpu gpu = two_kernels();
  const GpuMenus menus(gpu);
  // Of eight bits the newer ones alone multiply.
  GemmWork scaled = problem_of(1024, 2048, 512, Layout::nt, DType::bf16);
  scaled.scaling = Scaling::tensor_fast;
  EXPECT_EQ(select_gemm(scaled, gpu, menus).family, GemmWork::Family::wgmma);
  // Where nothing of the newer fits the older ones are all there is.
  Gpu older = gpu;
  older.gemm.tiles[2].shared_bytes = 1 << 30, older.gemm.tiles[2].stages = 2;
  const GpuMenus without(older);
  ASSERT_TRUE(without.of(GemmClass::wgmma_half, false).entries.empty());
  const GemmSelection made = select_gemm(problem_of(1024, 2048, 512, Layout::nt, DType::bf16), older, without);
  EXPECT_EQ(made.family, GemmWork::Family::mma_sync);
  EXPECT_TRUE(std::isfinite(made.expected));
}

// Alignment is that of the contiguous sides: k and n of nn, k of nt, m and n of tn; a single row or column is
// contiguous.
TEST(WorkedGenerations, alignment_is_that_of_contiguous_sides) {
  const auto alignment = [](std::int64_t m, std::int64_t n, std::int64_t k, Layout layout, DType type = DType::bf16) {
    return gemm_problem({.type = type, .m = m, .n = n, .k = k, .layout = layout}, two_kernels()).alignment;
  };
  EXPECT_EQ(alignment(7, 16, 24, Layout::nn), 16);
  EXPECT_EQ(alignment(7, 12, 24, Layout::nn), 8);
  EXPECT_EQ(alignment(7, 16, 22, Layout::nn), 4);
  EXPECT_EQ(alignment(7, 16, 21, Layout::nn), 2);
  EXPECT_EQ(alignment(7, 15, 24, Layout::nn), 2);
  EXPECT_EQ(alignment(7, 16, 24, Layout::nt), 16);
  EXPECT_EQ(alignment(7, 12, 24, Layout::nt), 8) << "the result's rows";
  EXPECT_EQ(alignment(12, 16, 7, Layout::tn), 8);
  EXPECT_EQ(alignment(16, 12, 7, Layout::tn), 8);
  EXPECT_EQ(alignment(16, 16, 7, Layout::tn), 16);
  EXPECT_EQ(alignment(16, 16, 12, Layout::tt), 8);
  EXPECT_EQ(alignment(1, 16, 24, Layout::tn), 16);
  EXPECT_EQ(alignment(1, 16, 12, Layout::tn), 8) << "a single row of A lies along k";
  EXPECT_EQ(alignment(16, 1, 24, Layout::nn), 16) << "a single column of B lies along k, the result along m";
  EXPECT_EQ(alignment(12, 1, 24, Layout::nn), 8);
  EXPECT_EQ(alignment(7, 6, 2, Layout::nn, DType::tf32), 8);
  EXPECT_EQ(alignment(7, 5, 3, Layout::nn, DType::fp32), 4);
}

}  // namespace
}  // namespace ridgeline::worked_generations

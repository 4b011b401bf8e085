// Matrices times one vector and few, and products in small tiles: what runs when, and that no time is impossible.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "sim/kernels/products/few_vectors.h"
#include "sim/kernels/products/gemm_selection.h"
#include "sim/kernels/products/small_tiles.h"
#include "sim/kernels/products/vector_product.h"
#include "sim/timing/analytic_engine.h"
#include "sim/timing/products/gemm_law.h"

namespace ridgeline {
namespace {

Matmul product(DType type, std::int64_t m, std::int64_t n, std::int64_t k, Layout layout = Layout::nt) {
  return {.type = type, .batch = 1, .m = m, .n = n, .k = k, .layout = layout};
}

double seconds(const Matmul& op, const Gpu& gpu, const Software& software = {}) {
  const AnalyticEngine engine(gpu);
  double sum = 0.0;
  for (const KernelLaunch& launch : lower(op, gpu, software).launches) sum += engine.time(launch, {}).time.value();
  return sum;
}

std::vector<std::string> names(const Matmul& op, const Gpu& gpu) {
  std::vector<std::string> all;
  for (const KernelLaunch& launch : lower(op, gpu, Software{}).launches) all.push_back(launch.name);
  return all;
}

class SmallProducts : public ::testing::TestWithParam<const char*> {
 protected:
  Gpu gpu_ = load_gpu(GetParam());
};
INSTANTIATE_TEST_SUITE_P(EachGeneration, SmallProducts,
                         ::testing::Values("nvidia-h200-sxm-141gb", "nvidia-a100-sxm4-80gb", "nvidia-v100-sxm2-16gb",
                                           "nvidia-t4", "nvidia-rtx-3090"));

TEST(VectorProduct, one_column_is_one_and_two_are_not) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (const Layout layout : {Layout::nn, Layout::nt, Layout::tn}) {
    EXPECT_TRUE(is_vector_product(product(DType::fp32, 1000, 1, 1000, layout), gpu));
    EXPECT_TRUE(is_vector_product(product(DType::fp32, 1, 1000, 1000, layout), gpu));
    EXPECT_FALSE(is_vector_product(product(DType::fp32, 1000, 2, 1000, layout), gpu));
    EXPECT_FALSE(is_vector_product(product(DType::fp32, 2, 1000, 1000, layout), gpu));
  }
}

TEST(VectorProduct, an_outer_product_is_none_and_two_terms_are_one) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_FALSE(is_vector_product(product(DType::fp32, 1, 64, 1), gpu));
  EXPECT_TRUE(is_vector_product(product(DType::fp32, 1, 64, 2), gpu));
}

TEST(VectorProduct, whole_16_bit_vectors_stay_with_the_tiled_kernels_of_hopper) {
  const Gpu hopper = load_gpu("nvidia-h200-sxm-141gb"), ampere = load_gpu("nvidia-a100-sxm4-80gb");
  EXPECT_FALSE(is_vector_product(product(DType::bf16, 1, 1024, 1024), hopper));
  EXPECT_TRUE(is_vector_product(product(DType::bf16, 1, 1024, 1020), hopper));
  EXPECT_TRUE(is_vector_product(product(DType::bf16, 1, 1023, 1024), hopper));
  EXPECT_TRUE(is_vector_product(product(DType::bf16, 1, 1024, 1024), ampere));
  // A single row has no pitch, in whatever layout it is given.
  EXPECT_FALSE(is_vector_product(product(DType::bf16, 1, 1024, 1024, Layout::tn), hopper));
}

TEST(VectorProduct, few_long_sums_and_the_pieces_of_columns_are_added_up_by_a_second_kernel) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_THAT(names(product(DType::fp32, 1, 24, 1264), gpu),
              ::testing::ElementsAre("dot_kernel", "reduce_1Block_kernel"));
  EXPECT_THAT(names(product(DType::fp32, 1, 24, 600), gpu), ::testing::ElementsAre("gemv_rows"));
  EXPECT_THAT(names(product(DType::fp32, 1, 400, 16000, Layout::nn), gpu),
              ::testing::ElementsAre("gemv_columns", "splitKreduce"));
  EXPECT_THAT(names(product(DType::fp32, 1, 400, 1400, Layout::nn), gpu), ::testing::ElementsAre("gemv_columns"));
}

// Of an H200 264 pieces of 8 to 4,000 values took 1.6 to 2.0 us each time: a block waits for its own 16 bytes a lane.
TEST(VectorProduct, one_result_of_fp32_waits_for_the_loads_of_a_piece) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto passes = [&](std::int64_t k) {
    const auto launches = lower(product(DType::fp32, 1, 1, k), gpu, Software{}).launches;
    return std::get<MemoryBoundWork>(launches.at(0).work).iterations;
  };
  EXPECT_DOUBLE_EQ(passes(4224), 1.0) << "264 pieces of 16 values, 64 bytes of 32 lanes";
  EXPECT_DOUBLE_EQ(passes(529), 1.0 + 1.8) << "177 pieces of three, which are no whole vectors";
  EXPECT_DOUBLE_EQ(passes(1000000), 30.0) << "264 pieces of 3,788";
  EXPECT_LT(seconds(product(DType::fp32, 1, 1, 10000000), gpu), 60e-6) << "40 MB of each";
}

TEST(VectorProduct, a_thread_adds_up_a_sum_alone_where_outputs_fill_a_block) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  // Profiled: 1.5 us and 5.8 us.
  EXPECT_LT(seconds(product(DType::fp32, 1, 64, 88, Layout::nn), gpu),
            0.5 * seconds(product(DType::fp32, 1, 1688, 88, Layout::nn), gpu));
}

TEST(VectorProduct, an_empty_one_is_refused) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_THROW(lower(product(DType::fp32, 1, 8, 0), gpu, Software{}), std::invalid_argument);
  EXPECT_THROW(lower(product(DType::fp32, 1, 0, 8), gpu, Software{}), std::invalid_argument);
}

TEST(MatmulLowering, a_bias_is_fused_where_b_has_two_rows_and_two_columns) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto first = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    Matmul op = product(DType::fp32, m, n, k);
    op.bias = true;
    return names(op, gpu).front();
  };
  EXPECT_EQ(first(64, 1, 64), "elementwise");
  EXPECT_EQ(first(64, 64, 1), "elementwise");
  EXPECT_EQ(first(1, 64, 1), "Memcpy DtoD");
  EXPECT_NE(first(64, 2, 64), "elementwise");
  EXPECT_NE(first(64, 64, 2), "elementwise");
}

TEST(FewVectors, are_up_to_sixteen_rows_with_a_bias_and_eight_without) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  Matmul op = product(DType::fp32, 16, 64, 64);
  op.bias = true;
  EXPECT_TRUE(is_few_vectors(op, gpu));
  op.m = 17;
  EXPECT_FALSE(is_few_vectors(op, gpu));
  EXPECT_TRUE(is_few_vectors(product(DType::fp32, 8, 64, 64), gpu));
  EXPECT_FALSE(is_few_vectors(product(DType::fp32, 9, 64, 64), gpu));
  EXPECT_FALSE(is_few_vectors(product(DType::fp32, 1, 64, 64), gpu));
}

// 10 blocks each; how many SMs there are changes nothing, so that more of them do no harm.
TEST(FewVectors, of_a_batch_run_from_264_blocks_on_whatever_the_chip) {
  Matmul op = product(DType::fp32, 2, 80, 896);
  for (const char* name : {"nvidia-a100-sxm4-80gb", "nvidia-h200-sxm-141gb", "nvidia-l4"}) {
    op.batch = 26;
    EXPECT_FALSE(is_few_vectors(op, load_gpu(name))) << name;
    op.batch = 27;
    EXPECT_TRUE(is_few_vectors(op, load_gpu(name))) << name;
  }
}

TEST(FewVectors, of_a_batch_run_where_blocks_are_many_and_sums_not_short) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  Matmul op = product(DType::fp32, 2, 80, 896);
  op.layout = Layout::nt;
  op.batch = 256;
  EXPECT_TRUE(is_few_vectors(op, gpu));
  op.batch = 4;
  EXPECT_FALSE(is_few_vectors(op, gpu));
  op.batch = 256;
  op.k = 64;
  EXPECT_FALSE(is_few_vectors(op, gpu));
  op.k = 896;
  op.m = 16;
  EXPECT_TRUE(is_few_vectors(op, gpu));
  op.m = 17;
  EXPECT_FALSE(is_few_vectors(op, gpu));
}

TEST(FewVectors, up_to_sixteen_rows_run_where_sums_are_few_and_short) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_TRUE(is_few_vectors(product(DType::fp32, 12, 180, 34), gpu));
  EXPECT_FALSE(is_few_vectors(product(DType::fp32, 12, 5000, 34), gpu));
  EXPECT_FALSE(is_few_vectors(product(DType::fp32, 17, 180, 34), gpu));
}

TEST(SmallTiles, tf32_sums_stand_behind_short_products_of_few_results) {
  const auto summed = [](std::int64_t m, std::int64_t n, std::int64_t k, Layout layout) {
    const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
    return is_always_summed(gemm_problem(product(DType::tf32, m, n, k, layout), gpu));
  };
  EXPECT_TRUE(summed(88, 20, 176, Layout::tn));
  EXPECT_FALSE(summed(88, 20, 304, Layout::tn));
  EXPECT_FALSE(summed(88, 20, 176, Layout::nt));
  EXPECT_TRUE(summed(64, 16, 32, Layout::nt));
  EXPECT_FALSE(summed(8, 3392, 32, Layout::tn));
}

TEST(SmallTiles, run_where_rows_begin_at_odd_places) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_EQ(names(product(DType::fp16, 20, 30, 50), gpu).front(), "gemm_wmma_small");
  EXPECT_NE(names(product(DType::fp16, 32, 32, 64), gpu).front(), "gemm_wmma_small");
  // An outer product of tf32 runs on the CUDA cores.
  EXPECT_EQ(names(product(DType::tf32, 40, 41, 1), gpu).front(), "gemm_simt_small");
  EXPECT_EQ(names(product(DType::tf32, 40, 41, 2), gpu).front(), "gemm_wmma_small");
}

TEST(SmallTiles, few_fp32_outputs_have_a_second_kernel_and_many_have_none) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_THAT(names(product(DType::fp32, 250, 200, 12, Layout::nn), gpu),
              ::testing::ElementsAre("gemm_simt_small", "splitKreduce"));
  EXPECT_EQ(names(product(DType::fp32, 251, 200, 12, Layout::nn), gpu).size(), 1u);
}

TEST(SmallTiles, aligned_tf32_ones_run_tiled_kernels_and_few_results_have_a_second_one) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const std::vector<std::string> few = names(product(DType::tf32, 64, 16, 32), gpu);
  ASSERT_EQ(few.size(), 2u);
  EXPECT_NE(few.front(), "gemm_wmma_small");
  EXPECT_EQ(few.back(), "splitKreduce");
  EXPECT_EQ(names(product(DType::tf32, 64, 2048, 16), gpu).size(), 1u);
  EXPECT_EQ(names(product(DType::tf32, 64, 17, 33), gpu).front(), "gemm_wmma_small");
}

TEST(SmallTiles, bf16_at_odd_values_have_a_second_kernel_up_to_a_number_of_outputs) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_EQ(names(product(DType::bf16, 2496, 64, 5), gpu).back(), "splitKreduce");
  EXPECT_EQ(names(product(DType::bf16, 27394, 35, 59), gpu).size(), 1u);
  EXPECT_EQ(names(product(DType::bf16, 70, 1440, 11, Layout::nn), gpu).size(), 1u);
  EXPECT_EQ(names(product(DType::bf16, 1026, 617, 3, Layout::nn), gpu).back(), "splitKreduce");
}

TEST(SmallTiles, very_few_fp32_outputs_have_a_second_kernel_however_long_the_sum) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto summed = ::testing::ElementsAre("gemm_simt_small", "splitKreduce");
  EXPECT_THAT(names(product(DType::fp32, 35, 4, 6400, Layout::nn), gpu), summed);
  EXPECT_THAT(names(product(DType::fp32, 36, 30, 4512, Layout::nt), gpu), summed);
  EXPECT_THAT(names(product(DType::fp32, 8, 6, 188, Layout::tn), gpu), summed);
  EXPECT_THAT(names(product(DType::fp32, 11, 41, 15772, Layout::tn), gpu), summed);
  EXPECT_EQ(names(product(DType::fp32, 8, 6, 90, Layout::tn), gpu).size(), 1u);
}

std::vector<Matmul> small_ones() {
  std::vector<Matmul> all;
  for (const DType type : {DType::fp16, DType::bf16, DType::tf32, DType::fp32})
    for (const Layout layout : {Layout::nn, Layout::nt, Layout::tn})
      for (const std::int64_t m : {1, 2, 7, 33})
        for (const std::int64_t n : {1, 2, 9, 200, 50001})
          for (const std::int64_t k : {1, 2, 16, 17, 300, 5000})
            for (const std::int64_t batch : {1, 24}) {
              if (batch * m * n * k > 1000000000) continue;
              Matmul op = product(type, m, n, k, layout);
              op.batch = batch;
              all.push_back(op);
            }
  return all;
}

TEST_P(SmallProducts, run_in_tiles_of_one_warp_only_with_a_bias) {
  for (const Matmul& op : small_ones())
    for (const KernelLaunch& launch : lower(op, gpu_, Software{}).launches)
      EXPECT_FALSE(launch.name == "gemm_wmma_small" && launch.threads_per_block == 32) << op.m << " x " << op.n;
}

TEST_P(SmallProducts, are_never_below_their_arithmetic_and_their_bytes) {
  for (const Matmul& op : small_ones()) {
    const double time = seconds(op, gpu_), element = static_cast<double>(bytes_of(op.type));
    const double batch = static_cast<double>(op.batch), m = static_cast<double>(op.m), n = static_cast<double>(op.n),
                 k = static_cast<double>(op.k);
    const double bytes = element * batch * (m * k + n * k);
    const GemmWork work = gemm_problem(op, gpu_);
    const MathRates& rates = gpu_.sm.rates;
    const double rate = std::max({rates.fp32, work.family == GemmWork::Family::simt ? 0.0 : rates.tensor_fp16});
    const double flops = 2.0 * batch * m * n * k / (2.0 * rate * gpu_.sm.count * gpu_.clock.boost.value());
    ASSERT_GT(time, bytes / gpu_.dram.bandwidth.value()) << op.m << " x " << op.n << " x " << op.k;
    ASSERT_GT(time, flops) << op.m << " x " << op.n << " x " << op.k;
    ASSERT_GT(time, gpu_.launch.kernel_fixed.value());
  }
}

/// Whether a kernel of the tile menus runs it, whose splits follow the number of SMs
/// (tests/kernels/gemm_selection_test.cpp).
bool is_tiled(const Matmul& op, const Gpu& gpu) {
  const std::vector<KernelLaunch> launches = lower(op, gpu, Software{}).launches;
  return std::any_of(launches.begin(), launches.end(), [](const KernelLaunch& launch) {
    const auto* work = std::get_if<GemmWork>(&launch.work);
    return work != nullptr && !work->reduces_splits;
  });
}

TEST_P(SmallProducts, are_never_slower_on_a_better_chip) {
  std::vector<Gpu> better(5, gpu_);
  better[0].sm.count = gpu_.sm.count * 3 / 2;
  better[1].dram.bandwidth = gpu_.dram.bandwidth * 2.0;
  better[2].l2.read_bandwidth = gpu_.l2.read_bandwidth * 2.0;
  better[3].sm.shared_bandwidth = gpu_.sm.shared_bandwidth * 2.0;
  better[4].dram.latency = gpu_.dram.latency * 0.5;
  // Tiles of another family that tie within 5 % may take the place of the fastest.
  constexpr double kTie = 1.05;
  for (const Matmul& op : small_ones()) {
    if (is_tiled(op, gpu_)) continue;
    const double now = seconds(op, gpu_);
    for (std::size_t i = 0; i < better.size(); ++i) {
      if (is_tiled(op, better[i])) continue;
      ASSERT_LE(seconds(op, better[i]), now * kTie)
          << name_of(op.type) << " " << op.batch << " x " << op.m << " x " << op.n << " x " << op.k << ", change " << i;
    }
  }
}

// In the L2 another kernel is the fastest than the one shown, whose second kernel takes as long as with cold operands.
TEST(ProductWays, what_runs_beside_a_product_leaves_it_the_time_of_its_arithmetic) {
  Gpu gpu = load_gpu("nvidia-l4");
  const AnalyticEngine engine(gpu);
  const double most =
      2.0 * gpu.sm.rates.tensor_bf16 * gpu.sm.count * std::max(gpu.clock.boost_tensor, gpu.clock.tensor).value();
  for (const double slower : {1.0, 2.0, 4.0, 6.4, 10.0}) {
    gpu = load_gpu("nvidia-l4");
    gpu.dram.bandwidth = gpu.dram.bandwidth * (1.0 / slower);
    for (const Layout layout : {Layout::nn, Layout::nt, Layout::tn})
      for (const KernelLaunch& launch : lower(product(DType::bf16, 384, 900, 900, layout), gpu, Software{}).launches) {
        const std::vector<double> held(launch.reads.size() + launch.writes.size(), 1.0);
        EXPECT_GE(engine.time(launch, held).time.value() * 1.001, launch.flops / most) << launch.name << slower;
      }
  }
}

TEST(FewVectors, ask_for_the_matrix_once_a_group_of_vectors) {
  for (const Layout layout : {Layout::nt, Layout::nn})
    for (const std::int64_t m : {2, 6, 7, 8, 9, 12, 16}) {
      const Matmul op = product(DType::fp32, m, 640, 64, layout);
      const auto vectors = static_cast<double>(m);
      const std::vector<Access> reads{{.operand = 0, .bytes = 4.0 * vectors * 64},
                                      {.operand = 1, .bytes = 4.0 * 640 * 64}},
          writes{{.operand = 2, .bytes = 4.0 * vectors * 640}};
      const KernelLaunch launch = few_vectors_launch(op, reads, writes);
      const double groups = static_cast<double>(launch.grid[1]);
      EXPECT_EQ(groups, layout == Layout::nt ? (m + 7) / 8 : (m + 5) / 6);
      EXPECT_DOUBLE_EQ(launch.reads[1].requested, groups * reads[1].bytes);
      EXPECT_DOUBLE_EQ(launch.read_bytes(), reads[0].bytes + reads[1].bytes) << "the L2 answers the rest";
    }
}

}  // namespace
}  // namespace ridgeline

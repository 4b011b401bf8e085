// Numbers of launches that follow from their sizes alone, counted by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "sim/kernels/products/gemm_candidates.h"
#include "sim/kernels/products/scaled_product.h"

namespace ridgeline {
namespace {

LoweredOp on_h200(const Op& op) { return lower(op, load_gpu("nvidia-h200-sxm-141gb"), Software{}); }

TEST(LaunchCounts, a_collective_runs_in_blocks_of_512_threads_and_moves_its_share) {
  const auto launch = [](CollectiveKind kind) {
    return on_h200(Op{Collective{.kind = kind, .type = DType::fp32, .ranks = 4, .bytes = 1 << 20}}).launches.front();
  };
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    EXPECT_EQ(launch(kind).threads_per_block, 512);
    EXPECT_EQ(launch(kind).time_class, TimeClass::communication);
  }
  EXPECT_DOUBLE_EQ(launch(CollectiveKind::all_reduce).read_bytes(), 1 << 20);
  EXPECT_DOUBLE_EQ(launch(CollectiveKind::all_reduce).written_bytes(), 1 << 20);
  EXPECT_DOUBLE_EQ(launch(CollectiveKind::all_gather).read_bytes(), 1 << 18);
  EXPECT_DOUBLE_EQ(launch(CollectiveKind::all_gather).written_bytes(), 1 << 20);
  EXPECT_DOUBLE_EQ(launch(CollectiveKind::reduce_scatter).read_bytes(), 1 << 20);
  EXPECT_DOUBLE_EQ(launch(CollectiveKind::reduce_scatter).written_bytes(), 1 << 18);
}

// A block selects from rows of up to 1,024 keys, and from up to 20,000 of fewer than twenty rows; else blocks share
// one.
TEST(LaunchCounts, a_row_of_1024_keys_is_selected_from_by_one_block) {
  const auto launches = [](std::int64_t rows, std::int64_t keys) {
    return on_h200(Op{Sort{DType::fp32, rows, keys, 1, 0}}).launches.size();
  };
  EXPECT_EQ(launches(100, 1024), 1u);
  EXPECT_GT(launches(100, 1025), 4u);
  EXPECT_EQ(launches(19, 20000), 1u);
  EXPECT_GT(launches(20, 20000), 4u);
  EXPECT_GT(launches(19, 20001), 4u);
}

// cuBLAS scales the result first and adds up in pieces only a single product, not each of a batch.
TEST(LaunchCounts, a_result_is_scaled_first_in_one_product_and_in_none_of_a_batch) {
  const auto scaled = [](std::int64_t batch) {
    const LoweredOp product = on_h200(Op{
        Matmul{.type = DType::fp32, .batch = batch, .m = 200, .n = 24, .k = 300, .layout = Layout::nt, .bias = true}});
    return std::any_of(product.launches.begin(), product.launches.end(),
                       [](const KernelLaunch& launch) { return launch.name == "scal_kernel"; });
  };
  EXPECT_TRUE(scaled(1));
  EXPECT_FALSE(scaled(3));
}

// The fp32 sums of dQ lie in whole tiles with a lock of 16 bytes each; they are cleared before.
TEST(LaunchCounts, an_accumulator_of_the_gradient_of_queries_is_made_of_whole_tiles) {
  const LoweredOp lowered = on_h200(Op{Attention{.backend = AttentionBackend::efficient,
                                                 .backward = true,
                                                 .type = DType::bf16,
                                                 .batch = 2,
                                                 .heads = 3,
                                                 .kv_heads = 3,
                                                 .seq_q = 1000,
                                                 .seq_k = 1000,
                                                 .head_dim = 64}});
  const auto fill = std::find_if(lowered.launches.begin(), lowered.launches.end(),
                                 [](const KernelLaunch& launch) { return launch.name == "fill"; });
  ASSERT_NE(fill, lowered.launches.end());
  const double least = 2.0 * 3 * 1000 * 64 * 4;
  EXPECT_GE(fill->written_bytes(), least);
  EXPECT_LE(fill->written_bytes(), 2.2 * least);
  EXPECT_NE(std::find(lowered.temporaries.begin(), lowered.temporaries.end(),
                      static_cast<std::int64_t>(fill->written_bytes())),
            lowered.temporaries.end());
}

// Each thread of a warp that walks down columns looks up a line of its own row: as many look-ups as warps have rows.
TEST(LaunchCounts, a_vector_times_a_matrix_looks_up_a_line_for_every_row_that_a_warp_touches) {
  const auto looked_up = [](std::int64_t n) {
    for (const KernelLaunch& launch :
         on_h200(Op{Matmul{.type = DType::fp32, .m = 1, .n = n, .k = 4096, .layout = Layout::nn}}).launches)
      if (const auto* work = std::get_if<MemoryBoundWork>(&launch.work); work && launch.name == "gemv_columns")
        return work->padded_elements;
    return 0.0;
  };
  ASSERT_GT(looked_up(4096), 0.0);
  EXPECT_LE(looked_up(4096), 4096.0 * 4096.0);
  EXPECT_GE(looked_up(4096), 4096.0 * 4096.0 / 32.0);
}

TEST(LaunchCounts, where_a_result_is_scaled_first_begins_and_ends) {
  const auto scaled = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
    return is_scaled_first({.type = DType::fp32, .m = m, .n = n, .k = k, .layout = Layout::nt, .bias = true}, gpu);
  };
  EXPECT_TRUE(scaled(17, 24, 300) && scaled(2400, 24, 300) && scaled(200, 2, 300) && scaled(200, 90, 300));
  EXPECT_TRUE(scaled(200, 24, 4) && scaled(200, 24, 4000));
  EXPECT_FALSE(scaled(16, 24, 300) || scaled(2401, 24, 300) || scaled(200, 1, 300) || scaled(200, 91, 300));
  EXPECT_FALSE(scaled(200, 24, 3) || scaled(200, 24, 4001));
}

// Blocks that share tiles in pieces of k pay from 28 steps of the main loop on, without a bias, in no batch.
TEST(LaunchCounts, sharing_tiles_in_pieces_needs_a_long_sum) {
  const GemmTile tile{.m = 128, .n = 128, .k = 64};
  const auto suits = [&](std::int64_t k, std::int64_t batch, bool bias) {
    GemmWork work;
    work.m = work.n = 512;
    work.k = k;
    work.batch = batch;
    work.bias = bias;
    return suits_stream_k(work, tile);
  };
  EXPECT_TRUE(suits(28 * 64, 1, false));
  EXPECT_FALSE(suits(28 * 64 - 1, 1, false));
  EXPECT_FALSE(suits(28 * 64, 2, false));
  EXPECT_FALSE(suits(28 * 64, 1, true));
}

}  // namespace
}  // namespace ridgeline

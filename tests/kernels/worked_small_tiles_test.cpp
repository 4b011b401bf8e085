// Products in small tiles worked out by hand: the tiles of every kind of product, when k is split, and when a second
// kernel stands behind all of them; and how a product's bias comes in.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/kernels/products/gemm_selection.h"
#include "sim/kernels/products/small_tiles.h"
#include "tests/kernels/one_tile_chips.h"
#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_small_tiles {
namespace {

using testing_support::made_up_chip;
using testing_support::text_of;

struct Sizes {
  std::int64_t m, n, k;
};
Matmul product_in(DType type, const Sizes& sizes, Layout layout = Layout::nt, bool bias = false,
                  std::int64_t batch = 1) {
  return {.type = type, .batch = batch, .m = sizes.m, .n = sizes.n, .k = sizes.k, .layout = layout, .bias = bias};
}
const std::vector<Access> kOperands{{.operand = 0, .bytes = 5000.0}, {.operand = 1, .bytes = 700.0}},
    kResults{{.operand = 2, .bytes = 90.0}};
std::vector<ProductWay> ways_of(const Matmul& op, const Gpu& gpu = made_up_chip()) {
  GemmWork problem = gemm_problem(op, gpu);
  problem.bias = op.bias;
  return small_tile_ways(problem, gpu, kOperands, kResults);
}
/// "threads registers shared bytes by splits", each way.
std::string tiles_text(const Matmul& op, const Gpu& gpu = made_up_chip()) {
  std::string text;
  for (const ProductWay& way : ways_of(op, gpu)) {
    const KernelLaunch& first = way.front();
    text +=
        fmt::format("{}{} {} {} by {}{}", text.empty() ? "" : ", ", first.threads_per_block, first.registers_per_thread,
                    first.shared_bytes_per_block, first.grid[1] / op.batch, way.size() > 1 ? " summed" : "");
  }
  return text;
}

// Of four warps 32 x 32 of 128, 64 and 32 values of k; of one warp 16 x 16, with a bias alone. The last of a list is
// taken however short k is, others where they are less than twice as long.
TEST(WorkedSmallTiles, pairs_of_16_bits_have_three_depths_or_the_longest) {
  const std::string deep = "128 90 37376 by 1", middle = "128 64 9728 by 1", shallow = "128 48 5120 by 1",
                    one_deep = "32 120 16896 by 1", one_middle = "32 72 4608 by 1";
  EXPECT_EQ(tiles_text(product_in(DType::fp16, {50, 50, 66})), deep + ", " + middle + ", " + shallow);
  EXPECT_EQ(tiles_text(product_in(DType::fp16, {50, 56, 64})), "") << "aligned";
  EXPECT_EQ(tiles_text(product_in(DType::fp16, {50, 50, 64})), middle + ", " + shallow);
  EXPECT_EQ(tiles_text(product_in(DType::fp16, {50, 50, 18})), middle + ", " + shallow);
  EXPECT_EQ(tiles_text(product_in(DType::fp16, {50, 50, 16})), middle);
  EXPECT_EQ(tiles_text(product_in(DType::fp16, {50, 50, 2})), middle);
  EXPECT_EQ(tiles_text(product_in(DType::fp16, {50, 50, 1})), "") << "an outer product";
  EXPECT_EQ(tiles_text(product_in(DType::fp16, {50, 50, 66}, Layout::nt, true)),
            deep + ", " + middle + ", " + shallow + ", " + one_deep + ", " + one_middle);
  // bf16's have long steps, but of batches and transposed operands.
  EXPECT_EQ(tiles_text(product_in(DType::bf16, {50, 50, 66})), deep);
  EXPECT_EQ(tiles_text(product_in(DType::bf16, {50, 50, 6}, Layout::nn)), deep);
  EXPECT_EQ(tiles_text(product_in(DType::bf16, {50, 50, 66}, Layout::nt, true)), deep + ", " + one_deep);
  EXPECT_EQ(tiles_text(product_in(DType::bf16, {50, 50, 66}, Layout::tn)), deep + ", " + middle + ", " + shallow);
  EXPECT_EQ(tiles_text(product_in(DType::bf16, {50, 50, 66}, Layout::nt, false, 2)),
            deep + ", " + middle + ", " + shallow);
}

// Single values of fp16 have two depths, of bf16 none; tf32 one of 64 where rows are not aligned, fp32 that of the CUDA
// cores.
TEST(WorkedSmallTiles, other_kinds_have_one_depth_or_two) {
  EXPECT_EQ(tiles_text(product_in(DType::fp16, {51, 51, 67})), "128 128 18944 by 1, 128 128 9728 by 1");
  EXPECT_EQ(tiles_text(product_in(DType::fp16, {51, 51, 63})), "128 128 9728 by 1");
  EXPECT_EQ(tiles_text(product_in(DType::bf16, {51, 51, 67})), "");
  EXPECT_EQ(tiles_text(product_in(DType::tf32, {50, 50, 67})), "128 72 49152 by 1");
  EXPECT_EQ(tiles_text(product_in(DType::tf32, {50, 52, 68})), "") << "aligned";
  EXPECT_EQ(tiles_text(product_in(DType::tf32, {50, 52, 1})), "128 80 25600 by 1") << "nothing for the tensor cores";
  EXPECT_EQ(tiles_text(product_in(DType::fp32, {500, 52, 68})), "128 80 25600 by 1");
  EXPECT_EQ(tiles_text(product_in(DType::fp16, {50, 50, 66}), testing_support::chip_of_cores()), "");
  Gpu chip = made_up_chip();
  chip.sm.async_copy = false;
  EXPECT_EQ(tiles_text(product_in(DType::fp32, {500, 52, 68}), chip), "");
  EXPECT_NE(tiles_text(product_in(DType::fp16, {50, 50, 66}), chip), "");
  chip = made_up_chip();
  chip.gemm.tiles.emplace_back();
  EXPECT_EQ(tiles_text(product_in(DType::fp32, {500, 52, 68}), chip), "") << "a library that a hardware file describes";
  Matmul sparse = product_in(DType::tf32, {48, 47, 72});
  EXPECT_NE(tiles_text(sparse), "");
  sparse.sparse = SparseOperand::a;
  chip = made_up_chip();
  chip.sm.rates.sparsity_factor = 2.0;
  EXPECT_EQ(tiles_text(sparse, chip), "");
}

// 16 bits are split in 8, 16 and 32, from k of 500 on, twice the shorter side, 64 a piece.
TEST(WorkedSmallTiles, sixteen_bits_are_split_where_k_is_long) {
  const auto splits = [](const Matmul& op) {
    std::string text;
    for (const ProductWay& way : ways_of(op)) text += fmt::format("{} ", way.front().grid[1] / op.batch);
    return text;
  };
  EXPECT_EQ(splits(product_in(DType::fp16, {51, 51, 499})), "1 1 ");
  EXPECT_EQ(splits(product_in(DType::fp16, {51, 51, 511})), "1 1 ");
  EXPECT_EQ(splits(product_in(DType::fp16, {51, 51, 513})), "1 8 1 8 ");
  EXPECT_EQ(splits(product_in(DType::fp16, {51, 51, 1025})), "1 8 16 1 8 16 ");
  EXPECT_EQ(splits(product_in(DType::fp16, {51, 51, 9001})), "1 8 16 32 64 128 1 8 16 32 64 128 ");
  EXPECT_EQ(splits(product_in(DType::fp16, {301, 301, 603})), "1 8 1 8 ");
  EXPECT_EQ(splits(product_in(DType::fp16, {301, 301, 601})), "1 1 ");
  EXPECT_EQ(splits(product_in(DType::fp16, {51, 51, 1025}, Layout::nt, false, 2)), "1 1 ");
  EXPECT_EQ(splits(product_in(DType::bf16, {51, 50, 1026})), "1 8 16 ");
  EXPECT_EQ(splits(product_in(DType::tf32, {50, 50, 1027})), "1 ");
  EXPECT_EQ(splits(product_in(DType::fp32, {500, 52, 1027})), "1 ");
}

// A second kernel adds up one piece too, in every power of two up to 128 of four values each.
TEST(WorkedSmallTiles, few_results_of_fp32_are_always_summed) {
  const auto summed = [](const Matmul& op) {
    const GemmWork problem = [&] {
      GemmWork made = gemm_problem(op, made_up_chip());
      made.bias = op.bias;
      return made;
    }();
    return is_few_summed(problem, made_up_chip());
  };
  const auto fp32 = [](const Sizes& sizes, Layout layout) { return product_in(DType::fp32, sizes, layout); };
  EXPECT_EQ(tiles_text(fp32({10, 100, 17}, Layout::nn)),
            "128 76 20480 by 1 summed, 128 76 20480 by 2 summed, 128 76 20480 by 4 summed");
  EXPECT_EQ(ways_of(fp32({10, 100, 1000}, Layout::nn)).size(), 8u) << "1 to 128";
  EXPECT_TRUE(summed(fp32({100, 500, 1000}, Layout::nn)));
  EXPECT_FALSE(summed(fp32({3, 16667, 1000}, Layout::nn)));
  EXPECT_FALSE(summed(fp32({100, 500, 1001}, Layout::nn)));
  EXPECT_TRUE(summed(fp32({10, 100, 1001}, Layout::nn)));
  EXPECT_FALSE(summed(fp32({11, 91, 1001}, Layout::nn)));
  EXPECT_TRUE(summed(fp32({40, 100, 5000}, Layout::nt)));
  EXPECT_FALSE(summed(fp32({3, 1334, 5000}, Layout::nt)));
  EXPECT_TRUE(summed(fp32({10, 100, 96}, Layout::tn)));
  EXPECT_FALSE(summed(fp32({10, 100, 95}, Layout::tn)));
  EXPECT_FALSE(summed(fp32({11, 91, 96}, Layout::tn)));
  EXPECT_FALSE(summed(fp32({10, 100, 96}, Layout::tt)));
  EXPECT_TRUE(summed(fp32({2, 2, 2}, Layout::nn)));
  EXPECT_FALSE(summed(fp32({1, 2, 2}, Layout::nn)));
  EXPECT_FALSE(summed(fp32({2, 1, 2}, Layout::nn)));
  EXPECT_FALSE(summed(fp32({2, 2, 1}, Layout::nn)));
  EXPECT_FALSE(summed(product_in(DType::fp32, {20, 20, 20}, Layout::nn, true)));
  EXPECT_FALSE(summed(product_in(DType::fp32, {20, 20, 20}, Layout::nn, false, 2)));
  EXPECT_FALSE(summed(product_in(DType::fp16, {20, 20, 21}, Layout::nn)));
  // 4 x 10^9 FLOPs are small.
  EXPECT_TRUE(summed(fp32({40, 100, 500000}, Layout::nt)));
  EXPECT_FALSE(summed(fp32({40, 100, 500001}, Layout::nt)));
  EXPECT_TRUE(ways_of(fp32({500, 1000, 4001}, Layout::nt)).empty());
  EXPECT_FALSE(ways_of(fp32({500, 1000, 4000}, Layout::nt)).empty());
}

// Of bf16 at odd places and of aligned tf32 with few results a second kernel brings sums to the type, k in one piece.
TEST(WorkedSmallTiles, short_sums_are_brought_to_their_type_by_a_second_kernel) {
  const auto always = [](DType type, const Sizes& sizes, Layout layout, bool bias = false, std::int64_t batch = 1) {
    GemmWork problem = gemm_problem(product_in(type, sizes, layout, bias, batch), made_up_chip());
    problem.bias = bias;
    return is_always_summed(problem);
  };
  constexpr DType kTf32 = DType::tf32, kBf16 = DType::bf16;
  constexpr Layout kNn = Layout::nn, kNt = Layout::nt, kTn = Layout::tn;
  EXPECT_TRUE(always(kTf32, {100, 100, 128}, kNt));
  EXPECT_FALSE(always(kTf32, {100, 100, 132}, kNt));
  EXPECT_TRUE(always(kTf32, {100, 100, 300}, kNn));
  EXPECT_FALSE(always(kTf32, {100, 100, 304}, kNn));
  EXPECT_TRUE(always(kTf32, {100, 100, 300}, kTn));
  EXPECT_FALSE(always(kTf32, {101, 100, 128}, kNt)) << "10,100 results";
  EXPECT_FALSE(always(kTf32, {100, 100, 126}, kNt)) << "not aligned";
  EXPECT_FALSE(always(kTf32, {100, 100, 128}, kNt, true));
  EXPECT_FALSE(always(kTf32, {100, 100, 128}, kNt, false, 2));
  EXPECT_FALSE(always(DType::fp32, {100, 100, 128}, kNt)) << "no tensor cores";
  EXPECT_TRUE(always(kBf16, {1000, 2000, 9}, kNn) || always(kBf16, {1001, 1997, 9}, kNn));
  EXPECT_TRUE(always(kBf16, {16949, 117, 9}, kNn)) << "1,983,033 results";
  EXPECT_FALSE(always(kBf16, {17095, 117, 9}, kNn)) << "2,000,115";
  EXPECT_FALSE(always(kBf16, {101, 99, 11}, kNn)) << "sums of eleven";
  EXPECT_FALSE(always(kBf16, {101, 98, 8}, kNn)) << "pairs";
  EXPECT_TRUE(always(kBf16, {2000, 99, 99}, kNt));
  EXPECT_TRUE(always(kBf16, {2001, 99, 100}, kTn));
  EXPECT_FALSE(always(kBf16, {2001, 99, 101}, kNt));
  EXPECT_FALSE(always(kBf16, {1979, 101, 99}, kNt)) << "101 columns";
  EXPECT_TRUE(always(kBf16, {2000, 100, 99}, kNt)) << "200,000 results";
  EXPECT_FALSE(always(kBf16, {2021, 99, 99}, kNt)) << "200,079";
  EXPECT_FALSE(always(kBf16, {99, 99, 99}, kNt)) << "no taller than wide";
  EXPECT_TRUE(always(kBf16, {100, 99, 99}, kNt));
  EXPECT_FALSE(always(kBf16, {101, 1, 99}, kNt));
  EXPECT_TRUE(always(kBf16, {101, 3, 3}, kNt));
  EXPECT_FALSE(always(kBf16, {101, 3, 1}, kNt));
  EXPECT_FALSE(always(kBf16, {101, 3, 3}, kNt, true));
  EXPECT_FALSE(always(kBf16, {101, 3, 3}, kNt, false, 2));
  EXPECT_FALSE(always(DType::fp16, {101, 3, 3}, kNt));
}

// A bias that is not fused is spread over the rows of the result, to which the product is added; one row is copied.
TEST(WorkedSmallTiles, a_bias_is_fused_or_spread_over_the_result_first) {
  LibraryKernel ran{LibraryKernel::Instructions::simt, 64, 64, 16, 2, 1};
  Matmul op = product_in(DType::fp32, {30, 20, 50}, Layout::nt, true);
  op.ran = ran;
  testing_support::expect_kernels(op, R"(
sm90_sgemm_64x64x16_tn contraction fp32 cores: 1 x 64, 128 registers shared 16384
  simt fp32 30x20x50 nt by 8 bytes, tile 64x64x16 stages 2 built with 2 an SM 8 bias; flops 60000 #0:6000 #1:4000 #2:80 -> #3:2400)");
  Software older;
  older.addmm_fuses_bias = false;
  testing_support::expect_kernels(op, R"(
elementwise [strided_copy] elementwise fp32 cores: 3 x 128, 18 registers
  elements 600 padded 18.75 active 2.34375 passes 2; flops 600 #2:80/2400 -> #3:2400
sm90_sgemm_64x64x16_tn contraction fp32 cores: 1 x 64, 128 registers shared 16384
  simt fp32 30x20x50 nt by 8 bytes, tile 64x64x16 stages 2 built with 2 an SM 8; flops 60000 #0:6000 #1:4000 #3:2400 -> #3:2400)",
                                  older);
  op.m = 1;
  testing_support::expect_kernels(op, R"(
Memcpy DtoD [copy_device] copy fp32 no pipe: 1 x 128, 32 registers
  elements 20 passes 0.00122070312; #2:80 -> #3:80
sm90_sgemm_64x64x16_tn contraction fp32 cores: 1 x 64, 128 registers shared 16384
  simt fp32 1x20x50 nt by 8 bytes, tile 64x64x16 stages 2 built with 2 an SM 8; flops 2000 #0:200 #1:4000 #3:80 -> #3:80)",
                                  older);
  // Neither of one column nor of one step.
  const auto launches = [&](const Sizes& sizes) {
    Matmul other = product_in(DType::fp32, sizes, Layout::nt, true);
    other.ran = ran;
    return lower(other, made_up_chip(), Software{}).launches.size();
  };
  EXPECT_EQ(launches({30, 2, 2}), 1u);
  EXPECT_EQ(launches({30, 1, 2}), 2u);
  EXPECT_EQ(launches({30, 2, 1}), 2u);
}

}  // namespace
}  // namespace ridgeline::worked_small_tiles

// Products of vectors, of few vectors and in small tiles, worked out by hand on both sides of each bound.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/kernels/products/few_vectors.h"
#include "sim/kernels/products/gemm_selection.h"
#include "sim/kernels/products/scaled_product.h"
#include "sim/kernels/products/vector_product.h"
#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_small_products {
namespace {

using testing_support::made_up_chip;
using testing_support::text_of;

Matmul product_of(DType type, std::int64_t m, std::int64_t n, std::int64_t k, Layout layout, bool bias = false,
                  std::int64_t batch = 1) {
  return {.type = type, .batch = batch, .m = m, .n = n, .k = k, .layout = layout, .bias = bias};
}
/// A column of `outputs` rows of A, contiguous along k (nn) or along the outputs (tn).
Matmul column_of(DType type, std::int64_t outputs, std::int64_t k, bool along_k, std::int64_t batch = 1) {
  return product_of(type, outputs, 1, k, along_k ? Layout::nn : Layout::tn, false, batch);
}
const std::vector<Access> kReads{{.operand = 0, .bytes = 5000.0}, {.operand = 1, .bytes = 700.0}},
    kWrites{{.operand = 2, .bytes = 90.0}};
std::string ways_text(const Matmul& op) {
  std::string text;
  for (const ProductWay& way : vector_product_ways(op, kReads, kWrites))
    for (const KernelLaunch& launch : way) text += "\n" + text_of(launch);
  return text;
}
/// "threads across x along: registers" of each shape in one piece.
std::string shapes_text(const Matmul& op) {
  std::string text;
  for (const ProductWay& way : vector_product_ways(op, kReads, kWrites))
    if (way.front().grid[1] == op.batch && way.size() == 1) {
      const std::int64_t outputs = std::max(op.m, op.n), blocks = way.front().grid[0];
      text += fmt::format("{}{}/{}:{}", text.empty() ? "" : " ", (outputs + blocks - 1) / blocks,
                          way.front().threads_per_block, way.front().registers_per_thread);
    }
  return text;
}
/// Splits that are tried.
std::string splits_text(const Matmul& op) {
  std::string text;
  for (const ProductWay& way : vector_product_ways(op, kReads, kWrites))
    if (way.size() > 1) text += fmt::format("{} ", way.front().grid[1]);
  return text;
}

// A dot product has 16 bytes a lane and pass, 33 x 4 bytes of two lanes five, and 1.8 for head and tail.
TEST(WorkedVectorProducts, sums_along_k_have_lanes_side_by_side) {
  EXPECT_EQ(ways_text(column_of(DType::fp32, 500, 33, true)), R"(
gemv_rows [vector_rows] contraction fp32 cores: 16 x 64, 72 registers shared 1024
  elements 16533 padded 500 passes 6.8; flops 33000 #0:5000 #1:700 -> #2:90)");
  EXPECT_EQ(ways_text(column_of(DType::fp16, 500, 40, true, 3)), R"(
gemv_rows [vector_rows_half] contraction fp16 cores: 8,3 x 128, 56 registers shared 1024
  elements 60120 padded 1500 passes 3; flops 120000 #0:5000 #1:700 -> #2:90)");
}

// 64 values of two threads are two loads of sixteen each; 71 of one thread of few registers 18 of four, 1.83 each; 200
// of two six loads and four left over.
TEST(WorkedVectorProducts, sums_down_columns_load_sixteen_together) {
  EXPECT_EQ(ways_text(column_of(DType::fp32, 500, 64, false)), R"(
gemv_columns [vector_columns] contraction fp32 cores: 16 x 64, 166 registers shared 1024
  elements 32064 padded 1000 passes 2 tail 1; flops 64000 #0:5000 #1:700 -> #2:90)");
  EXPECT_EQ(ways_text(column_of(DType::fp32, 500, 71, false)), R"(
gemv_columns [vector_columns] contraction fp32 cores: 4 x 128, 48 registers shared 1024
  elements 35571 padded 1109.375 passes 32.94; flops 71000 #0:5000 #1:700 -> #2:90)");
  EXPECT_EQ(ways_text(product_of(DType::fp32, 1, 500, 200, Layout::nn)), R"(
gemv_columns [vector_columns] contraction fp32 cores: 8 x 128, 164 registers shared 1024
  elements 100200 padded 3125 passes 7.83 tail 1; flops 200000 #0:5000 #1:700 -> #2:90)");
}

// Pieces of a block each, 16 to 496 a sum: 128 threads take four values at once.
TEST(WorkedVectorProducts, few_long_sums_are_dot_products_in_pieces) {
  EXPECT_EQ(ways_text(column_of(DType::fp32, 104, 9000, true)), R"(
dot_kernel [vector_dots] contraction fp32 cores: 16,104 x 128, 40 registers shared 1024
  elements 945000 passes 2; flops 1872000 #0:5000 #1:700 -> t:6656
reduce_1Block_kernel [vector_sums] contraction fp32 cores: 104 x 128, 32 registers shared 1024
  elements 1664; t:6656 -> #2:90)");
  EXPECT_EQ(ways_text(column_of(DType::fp16, 3, 9000, false)), R"(
dot_kernel [vector_dots] contraction fp16 cores: 31,3 x 128, 40 registers shared 1024
  elements 36000; flops 54000 #0:5000 #1:700 -> t:372
reduce_1Block_kernel [vector_sums] contraction fp32 cores: 3 x 128, 32 registers shared 1024
  elements 93; t:372 -> #2:90)");
  EXPECT_EQ(ways_text(column_of(DType::bf16, 1, 254000, true)), R"(
dot_kernel [vector_dots] contraction bf16 cores: 496 x 128, 40 registers shared 1024
  elements 508000 passes 2; flops 508000 #0:5000 #1:700 -> t:1984
reduce_1Block_kernel [vector_sums] contraction fp32 cores: 1 x 128, 32 registers shared 1024
  elements 496 passes 4; t:1984 -> #2:90)");
  const auto dots = [](const Matmul& op) {
    return vector_product_ways(op, kReads, kWrites).front().front().name == "dot_kernel";
  };
  EXPECT_TRUE(dots(column_of(DType::fp32, 104, 700, true)));
  EXPECT_FALSE(dots(column_of(DType::fp32, 105, 700, true)));
  EXPECT_FALSE(dots(column_of(DType::fp32, 104, 699, true)));
  EXPECT_TRUE(dots(column_of(DType::fp16, 40, 700, true)));
  EXPECT_FALSE(dots(column_of(DType::fp16, 41, 700, true)));
  EXPECT_TRUE(dots(column_of(DType::fp32, 64, 3800, false)));
  EXPECT_FALSE(dots(column_of(DType::fp32, 65, 3800, false)));
  EXPECT_FALSE(dots(column_of(DType::fp32, 64, 3799, false)));
  EXPECT_TRUE(dots(column_of(DType::fp16, 104, 3800, false)));
  EXPECT_FALSE(dots(column_of(DType::fp16, 105, 3800, false)));
  EXPECT_FALSE(dots(column_of(DType::fp16, 3, 9000, false, 2))) << "a batch";
  EXPECT_FALSE(dots(column_of(DType::fp32, 1, 9000, true))) << "one of fp32";
  EXPECT_TRUE(dots(column_of(DType::fp16, 1, 9, true))) << "one of 16 bits";
}

// Outputs of a block and its threads, by the length of the sums. 10,000 outputs: most divide among full blocks.
TEST(WorkedVectorProducts, shapes_follow_the_length_of_the_sums) {
  constexpr std::int64_t kMany = 12800;
  EXPECT_EQ(shapes_text(column_of(DType::fp32, kMany, 63, true)), "32/64:72");
  EXPECT_EQ(shapes_text(column_of(DType::fp16, kMany, 63, true)), "64/128:56");
  const std::string rows = "16/64:72 8/64:72 8/128:65 4/128:159";
  EXPECT_EQ(shapes_text(column_of(DType::fp32, kMany, 64, true)), rows);
  EXPECT_EQ(shapes_text(column_of(DType::fp16, kMany, 64, true)), rows);
  const std::string columns = "4/128:164 8/256:164 32/512:128 128/512:128", middle = "8/256:45 64/128:56";
  EXPECT_EQ(shapes_text(column_of(DType::fp32, kMany, 64, false)), "32/64:166");
  EXPECT_EQ(shapes_text(column_of(DType::fp32, kMany, 65, false)), "128/128:48");
  EXPECT_EQ(shapes_text(column_of(DType::fp32, 128, 99, false)), "128/128:48");
  EXPECT_EQ(shapes_text(column_of(DType::fp32, 127, 99, false)), "8/256:45 64/128:56");
  EXPECT_EQ(shapes_text(column_of(DType::fp32, kMany, 99, false)), "128/128:48");
  EXPECT_EQ(shapes_text(column_of(DType::fp32, kMany, 100, false)), middle);
  EXPECT_EQ(shapes_text(column_of(DType::fp32, kMany, 174, false)), middle);
  EXPECT_EQ(shapes_text(column_of(DType::fp32, kMany, 175, false)), "64/128:164");
  EXPECT_EQ(shapes_text(column_of(DType::fp32, kMany, 239, false)), "64/128:164");
  EXPECT_EQ(shapes_text(column_of(DType::fp32, kMany, 240, false)), columns);
  EXPECT_EQ(shapes_text(column_of(DType::bf16, kMany, 49, false)), "128/128:48");
  EXPECT_EQ(shapes_text(column_of(DType::bf16, kMany, 50, false)), middle);
  EXPECT_EQ(shapes_text(column_of(DType::bf16, kMany, 299, false)), middle);
  EXPECT_EQ(shapes_text(column_of(DType::bf16, kMany, 300, false)), columns);
  EXPECT_EQ(shapes_text(column_of(DType::fp32, kMany, 299, false, 2)), "32/64:166 " + middle);
  EXPECT_EQ(shapes_text(column_of(DType::fp32, kMany, 300, false, 2)), columns);
  // A row of B is a sum along k where B is transposed.
  EXPECT_EQ(shapes_text(product_of(DType::fp32, 1, kMany, 64, Layout::nt)), rows);
  EXPECT_EQ(shapes_text(product_of(DType::fp32, 1, kMany, 64, Layout::tt)), rows);
  EXPECT_EQ(shapes_text(product_of(DType::fp32, 1, kMany, 64, Layout::nn)), "32/64:166");
  EXPECT_EQ(shapes_text(product_of(DType::fp32, 1, kMany, 64, Layout::tn)), "32/64:166");
  EXPECT_EQ(shapes_text(product_of(DType::fp32, kMany, 1, 64, Layout::nt)), rows);
  EXPECT_EQ(shapes_text(product_of(DType::fp32, kMany, 1, 64, Layout::tt)), "32/64:166");
}

// Columns of 1,500 and more, 512 a piece, of more than 128 outputs.
TEST(WorkedVectorProducts, long_columns_are_split_in_powers_of_two) {
  EXPECT_EQ(splits_text(column_of(DType::fp32, 500, 1499, false)), "");
  EXPECT_EQ(splits_text(column_of(DType::fp32, 500, 1500, false)), "2 2 2 2 ") << "of each of four shapes";
  EXPECT_EQ(splits_text(column_of(DType::fp32, 500, 2047, false)), "2 2 2 2 ");
  EXPECT_EQ(splits_text(column_of(DType::fp32, 500, 2048, false)), "2 4 2 4 2 4 2 4 ");
  EXPECT_EQ(splits_text(column_of(DType::fp32, 129, 1500, false)), "2 2 2 2 ");
  EXPECT_EQ(splits_text(column_of(DType::fp32, 128, 1500, false)), "");
  EXPECT_EQ(splits_text(column_of(DType::fp32, 500, 16384, false)), "2 4 8 16 32 2 4 8 16 32 2 4 8 16 32 2 4 8 16 32 ");
  EXPECT_EQ(splits_text(column_of(DType::fp32, 500, 16383, false)), "2 4 8 16 2 4 8 16 2 4 8 16 2 4 8 16 ");
  EXPECT_EQ(splits_text(column_of(DType::fp32, 500, 5000, true)), "") << "along k";
  EXPECT_EQ(splits_text(column_of(DType::fp32, 500, 5000, false, 2)), "") << "a batch";
}

TEST(WorkedVectorProducts, products_of_vectors_have_one_row_or_column_and_more_than_one_step) {
  const Gpu gpu = made_up_chip();
  EXPECT_TRUE(is_vector_product(product_of(DType::fp32, 1, 50, 2, Layout::nn), gpu));
  EXPECT_TRUE(is_vector_product(product_of(DType::fp32, 50, 1, 2, Layout::nn), gpu));
  EXPECT_FALSE(is_vector_product(product_of(DType::fp32, 50, 1, 1, Layout::nn), gpu));
  EXPECT_FALSE(is_vector_product(product_of(DType::fp32, 50, 2, 2, Layout::nn), gpu));
  EXPECT_FALSE(is_vector_product(product_of(DType::bf16, 64, 1, 64, Layout::nn), gpu)) << "aligned: wgmma";
  EXPECT_TRUE(is_vector_product(product_of(DType::bf16, 63, 1, 63, Layout::nn), gpu));
  EXPECT_TRUE(is_vector_product(product_of(DType::tf32, 64, 1, 64, Layout::nn), gpu)) << "wgmma, but of four bytes";
  Matmul sparse = product_of(DType::tf32, 64, 1, 64, Layout::nn);
  sparse.sparse = SparseOperand::a;
  EXPECT_FALSE(is_vector_product(sparse, gpu));
}

bool few(const Matmul& op) { return is_few_vectors(op, made_up_chip()); }
constexpr DType kFull = DType::fp32, kHalf = DType::bf16;

// B along k. fp32: 8 vectors without a bias, 16 with one, of short sums, many outputs or with a bias; bf16 at odd
// places with a bias alone.
TEST(WorkedFewVectors, rows_of_b_are_added_up_for_up_to_sixteen_vectors) {
  constexpr Layout kNt = Layout::nt;
  for (const auto& [m, n, k, bias, wanted] : std::vector<std::tuple<int, int, int, bool, bool>>{
           {2, 1500, 2, false, true},     {1, 1500, 50, false, false},   {2, 1, 50, false, false},
           {2, 1500, 1, false, false},    {8, 1500, 500, false, true},   {9, 1500, 500, false, false},
           {16, 1500, 500, true, true},   {17, 1500, 500, true, false},  {8, 999, 100, false, true},
           {8, 999, 101, false, false},   {8, 1000, 101, false, true},   {8, 999, 101, true, true},
           {8, 9999, 101, false, true},   {8, 10000, 101, false, false}, {4, 10000, 101, false, true},
           {5, 10000, 101, false, false}, {10, 50, 8999, true, true},    {10, 50, 9000, true, false},
           {11, 50, 1999, true, true},    {11, 50, 2000, true, false},   {16, 1000, 40, false, true},
           {17, 1000, 40, false, false},  {16, 1000, 41, false, false},  {16, 1001, 40, false, false}})
    EXPECT_EQ(few(product_of(kFull, m, n, k, kNt, bias)), wanted) << m << ' ' << n << ' ' << k << ' ' << bias;
  EXPECT_TRUE(few(product_of(kHalf, 10, 51, 51, kNt, true)));
  EXPECT_FALSE(few(product_of(kHalf, 11, 51, 51, kNt, true)));
  EXPECT_FALSE(few(product_of(kHalf, 10, 51, 51, kNt, false)));
  EXPECT_FALSE(few(product_of(kHalf, 10, 52, 52, kNt, true))) << "pairs";
  EXPECT_FALSE(few(product_of(DType::fp16, 10, 51, 51, kNt, true)));
  EXPECT_FALSE(few(product_of(DType::tf32, 8, 999, 51, kNt)));
}

// 264 blocks of 8 x 8: four of each product of 66.
TEST(WorkedFewVectors, batches_of_rows_run_of_many_blocks) {
  const auto batch_of = [](DType type, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k,
                           Layout layout = Layout::nt) { return product_of(type, m, n, k, layout, false, batch); };
  EXPECT_TRUE(few(batch_of(kFull, 66, 9, 9, 90)));
  EXPECT_FALSE(few(batch_of(kFull, 65, 9, 9, 90)));
  EXPECT_FALSE(few(batch_of(kFull, 66, 8, 9, 90)));
  EXPECT_FALSE(few(batch_of(kFull, 66, 9, 8, 90)));
  EXPECT_FALSE(few(batch_of(kFull, 66, 9, 9, 89)));
  EXPECT_TRUE(few(batch_of(kFull, 66, 16, 9, 90)));
  EXPECT_FALSE(few(batch_of(kFull, 66, 17, 9, 90)));
  EXPECT_TRUE(few(batch_of(kHalf, 66, 9, 9, 91)));
  EXPECT_FALSE(few(batch_of(kHalf, 66, 9, 10, 92))) << "pairs";
  EXPECT_FALSE(few(batch_of(kFull, 66, 9, 9, 90, Layout::nn)));
}

TEST(WorkedFewVectors, columns_of_b_are_walked_for_up_to_twelve_vectors) {
  constexpr Layout kNn = Layout::nn;
  for (const auto& [type, m, n, k, wanted] :
       std::vector<std::tuple<DType, int, int, int, bool>>{{kFull, 12, 1500, 320, true},
                                                           {kFull, 12, 1500, 321, false},
                                                           {kFull, 12, 10000, 321, true},
                                                           {kFull, 12, 9999, 321, false},
                                                           {kFull, 13, 10000, 320, false},
                                                           {kFull, 16, 1000, 40, true},
                                                           {kFull, 17, 1000, 40, false},
                                                           {kFull, 16, 1001, 40, false},
                                                           {kFull, 16, 1000, 41, false},
                                                           {kHalf, 12, 1501, 319, true},
                                                           {kHalf, 12, 1501, 321, false},
                                                           {kHalf, 13, 199, 127, true},
                                                           {kHalf, 16, 199, 127, true},
                                                           {kHalf, 17, 199, 127, false},
                                                           {kHalf, 16, 201, 127, false},
                                                           {kHalf, 16, 199, 129, false},
                                                           {kHalf, 12, 1502, 318, false},
                                                           {DType::tf32, 12, 1500, 320, false}})
    EXPECT_EQ(few(product_of(type, m, n, k, kNn)), wanted) << m << ' ' << n << ' ' << k << ' ' << name_of(type);
  EXPECT_TRUE(few(product_of(kHalf, 16, 199, 128, kNn)));
  EXPECT_FALSE(few(product_of(kFull, 4, 50, 50, Layout::tn)));
  EXPECT_FALSE(few(product_of(kFull, 4, 50, 50, Layout::tt)));
  Matmul sparse = product_of(kFull, 4, 48, 48, kNn);
  EXPECT_TRUE(few(sparse));
  sparse.sparse = SparseOperand::b;
  EXPECT_FALSE(few(sparse));
  Gpu changed = made_up_chip();
  changed.gemm.tiles.emplace_back();
  EXPECT_FALSE(is_few_vectors(product_of(kFull, 4, 48, 48, kNn), changed));
}

// 13 vectors in two groups of 8 rows of B, 6.5 together: k / 32 passes of 1 + 0.247 x 6.5; down columns three groups of
// 64, k / 8 of 1 + 0.008 x 13 / 3.
TEST(WorkedFewVectors, a_group_of_vectors_reads_the_matrix_once) {
  EXPECT_EQ("\n" + text_of(few_vectors_launch(product_of(kFull, 13, 30, 640, Layout::nt), kReads, kWrites)), R"(
gemmSN_TN [few_rows] contraction fp32 cores: 4,2 x 128, 64 registers shared 6144
  elements 38400 padded 249600 passes 52.11; flops 499200 #0:5000 #1:700/1400 -> #2:90)");
  EXPECT_EQ("\n" + text_of(few_vectors_launch(product_of(kHalf, 13, 130, 80, Layout::nn, false, 5), kReads, kWrites)),
            R"(
gemmSN_NN [few_columns] contraction bf16 cores: 3,15 x 128, 64 registers shared 6144
  elements 156000 padded 676000 passes 10.3466667; flops 1352000 #0:5000 #1:700/2100 -> #2:90)");
}

TEST(WorkedScaledProducts, run_where_fp32_has_a_bias_and_few_columns) {
  const Gpu gpu = made_up_chip();
  const auto scaled = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return is_scaled_first(product_of(kFull, m, n, k, Layout::nt, true), gpu);
  };
  EXPECT_TRUE(scaled(17, 90, 4));
  EXPECT_FALSE(scaled(16, 90, 4));
  EXPECT_TRUE(scaled(2400, 2, 4000));
  EXPECT_FALSE(scaled(2401, 2, 4000));
  EXPECT_FALSE(scaled(2400, 1, 4000));
  EXPECT_FALSE(scaled(17, 91, 4));
  EXPECT_FALSE(scaled(17, 90, 3));
  EXPECT_FALSE(scaled(2400, 2, 4001));
  const Matmul fine = product_of(kFull, 17, 90, 4, Layout::nt, true);
  for (const auto change : {+[](Matmul& op) { op.type = DType::tf32; }, +[](Matmul& op) { op.bias = false; },
                            +[](Matmul& op) { op.layout = Layout::nn; }, +[](Matmul& op) { op.batch = 2; },
                            +[](Matmul& op) { op.sparse = SparseOperand::a; }}) {
    Matmul other = fine;
    change(other);
    EXPECT_FALSE(is_scaled_first(other, gpu));
  }
  Gpu changed = gpu;
  changed.gemm.tiles.emplace_back();
  EXPECT_FALSE(is_scaled_first(fine, changed));
}

// Tiles of 32 x 32 in up to five pieces of k: of 100 x 40 four by two, each of which asks for its panels.
TEST(WorkedScaledProducts, are_cleared_scaled_added_up_and_get_their_bias_at_last) {
  LoweredOp made;
  append_scaled_first(made.launches, product_of(kFull, 100, 40, 300, Layout::nt, true),
                      {{0, 120000.0}, {1, 48000.0}, {2, 160.0}}, {{3, 16000.0}});
  EXPECT_EQ(text_of(made), R"(
Memset contraction fp32 no pipe: 1 x 128, 32 registers
  memset 4; ->
scal_kernel [scale] contraction fp32 cores: 8 x 128, 32 registers
  elements 4000; #3:16000 -> #3:16000
sgemm_largek [largek] contraction fp32 cores: 8,5 x 256, 32 registers shared 4356
  elements 108000 padded 2457600 passes 60 tail 4; flops 2400000 #0:120000/240000 #1:48000/192000 -> #3:16000
epilogue [add] contraction fp32 cores: 8 x 128, 32 registers
  elements 4000; #3:16000 #2:160 -> #3:16000)");
  const auto pieces = [](std::int64_t k) {
    LoweredOp other;
    append_scaled_first(other.launches, product_of(kFull, 100, 40, k, Layout::nt, true), kReads, kWrites);
    EXPECT_EQ(other.launches.back().reads.size(), 1u) << "no bias is read";
    return other.launches[2].grid[1];
  };
  EXPECT_EQ(pieces(8), 1);
  EXPECT_EQ(pieces(9), 2);
  EXPECT_EQ(pieces(32), 4);
  EXPECT_EQ(pieces(33), 5);
  EXPECT_EQ(pieces(41), 5);
}

}  // namespace
}  // namespace ridgeline::worked_small_products

// Point-wise kernels worked out by hand: the kernel of every function, and every way in which operands are walked.
#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_elementwise {
namespace {

using testing_support::expect_kernels;
using F = PointwiseFunction;

struct Operands {
  std::vector<DType> inputs;
  DType output = DType::fp32;
};
Pointwise pointwise_of(F function, std::int64_t rows, std::int64_t cols, const Operands& operands,
                       Walk walk = Walk::contiguous) {
  Pointwise op{.function = function,
               .rows = rows,
               .cols = cols,
               .input_count = static_cast<std::uint8_t>(operands.inputs.size()),
               .output = operands.output,
               .walk = walk};
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) op.inputs[i] = operands.inputs[i];
  return op;
}
const Operands kHalves{{DType::bf16, DType::bf16}, DType::bf16}, kHalf{{DType::bf16}, DType::bf16},
    kFull{{DType::fp32}, DType::fp32}, kFulls{{DType::fp32, DType::fp32}, DType::fp32};

// 2,500 elements: three blocks of 1,024, the last one of 452, whose 128 threads take four steps, three behind the
// first.
TEST(WorkedElementwise, contiguous_operands_are_taken_by_vectors) {
  expect_kernels(pointwise_of(F::add, 50, 50, kFulls), R"(
add [add] elementwise fp32 cores: 3 x 128, 32 registers
  elements 2500 active 2.44140625 tail 3; flops 2500 #0:10000 #1:10000 -> #2:10000)");
  expect_kernels(pointwise_of(F::add, 50, 50, kHalves), R"(
add [add] elementwise bf16 cores: 3 x 128, 34 registers
  elements 2500 active 2.44140625 tail 3; flops 2500 #0:5000 #1:5000 -> #2:5000)");
  // Whole blocks have no last one; of 1,025 elements the last block has one step.
  expect_kernels(pointwise_of(F::mul, 2, 1024, kHalves), R"(
mul [mul] elementwise bf16 cores: 2 x 128, 40 registers
  elements 2048 active 2; flops 2048 #0:4096 #1:4096 -> #2:4096)");
  expect_kernels(pointwise_of(F::scale, 5, 205, kHalf), R"(
mul [scale] elementwise bf16 cores: 2 x 128, 32 registers
  elements 1025 active 1.00097656; flops 1025 #0:2050 -> #1:2050)");
  expect_kernels(pointwise_of(F::add, 1, 2047, {{DType::tf32, DType::fp32}, DType::fp32}), R"(
add [add] elementwise fp32 cores: 2 x 128, 32 registers
  elements 2047 active 1.99902344 tail 7; flops 2047 #0:8188 #1:8188 -> #2:8188)");
}

TEST(WorkedElementwise, a_sequence_of_numbers_has_blocks_of_64_threads) {
  expect_kernels(pointwise_of(F::arange, 1, 200, {{}, DType::int64}), R"(
arange [fill] elementwise int64 cores: 4 x 64, 16 registers
  elements 200 active 3.125; flops 200 -> #0:1600)");
  expect_kernels(pointwise_of(F::fill, 3, 350, {{}, DType::bf16}), R"(
fill [fill] elementwise bf16 cores: 2 x 128, 16 registers
  elements 1050 active 1.02539062; -> #0:2100)");
}

// Elements whose type is not the functor's are converted as they are loaded: 512 a block, in no vectors.
TEST(WorkedElementwise, operands_of_other_types_are_converted_as_they_are_loaded) {
  expect_kernels(pointwise_of(F::cast, 5, 500, {{DType::fp32}, DType::bf16}), R"(
cast [cast_down] copy bf16 cores: 3 x 128, 32 registers
  elements 2500 active 2.44140625 tail 3; #0:10000 -> #1:5000)");
  expect_kernels(pointwise_of(F::cast, 5, 500, {{DType::bf16}, DType::fp32}), R"(
cast [unrolled_cast] copy bf16 cores: 5 x 128, 32 registers
  elements 2500 active 4.8828125 passes 4; #0:5000 -> #1:10000)");
  expect_kernels(pointwise_of(F::cast, 5, 500, {{DType::fp16}, DType::fp16}), R"(
cast [cast_down] copy fp16 cores: 3 x 128, 32 registers
  elements 2500 active 2.44140625 tail 3; #0:5000 -> #1:5000)");
  expect_kernels(pointwise_of(F::cast, 5, 500, {{DType::int64}, DType::bf16}), R"(
cast [unrolled_cast] copy bf16 cores: 5 x 128, 32 registers
  elements 2500 active 4.8828125 passes 4; #0:20000 -> #1:5000)");
  expect_kernels(pointwise_of(F::add, 5, 60, {{DType::bf16, DType::fp32}, DType::fp32}), R"(
add [unrolled_mixed] elementwise fp32 cores: 1 x 128, 32 registers
  elements 300 active 0.5859375 passes 3; flops 300 #0:600 #1:1200 -> #2:1200)");
  expect_kernels(pointwise_of(F::add, 5, 60, {{DType::fp32, DType::bf16}, DType::fp32}), R"(
add [unrolled_mixed] elementwise fp32 cores: 1 x 128, 32 registers
  elements 300 active 0.5859375 passes 3; flops 300 #0:1200 #1:600 -> #2:1200)");
  // Comparing makes a byte of four, and a mask belongs to its functor.
  expect_kernels(pointwise_of(F::equal, 5, 60, {{DType::fp32}, DType::boolean}), R"(
eq [unary] elementwise bool cores: 1 x 128, 32 registers
  elements 300 active 0.29296875 tail 2; flops 300 #0:1200 -> #1:300)");
  expect_kernels(pointwise_of(F::dropout_backward, 5, 60, {{DType::bf16, DType::boolean}, DType::bf16}), R"(
masked_scale [dropout_backward] elementwise bf16 cores: 1 x 128, 40 registers
  elements 300 active 0.29296875 tail 2; flops 600 #0:600 #1:300 -> #2:600)");
  expect_kernels(pointwise_of(F::mul, 5, 60, {{DType::fp32, DType::uint8}, DType::fp32}), R"(
mul [mul] elementwise fp32 cores: 1 x 128, 32 registers
  elements 300 active 0.29296875 tail 2; flops 300 #0:1200 #1:300 -> #2:1200)");
}

// A thread computes where its elements lie: 256 a block of four bytes and more, 512 of fewer or of converted ones.
TEST(WorkedElementwise, operands_that_are_repeated_or_permuted_have_their_places_computed) {
  expect_kernels(pointwise_of(F::add, 7, 90, kFulls, Walk::broadcast_row), R"(
add [broadcast_binary] elementwise fp32 cores: 3 x 128, 18 registers
  elements 630 active 2.4609375 passes 2; flops 630 #0:2520 #1:360/2520 -> #2:2520)");
  expect_kernels(pointwise_of(F::add, 7, 90, kHalves, Walk::broadcast_row), R"(
add [broadcast_binary] elementwise bf16 cores: 2 x 128, 18 registers
  elements 630 active 1.23046875 passes 4; flops 630 #0:1260 #1:180/1260 -> #2:1260)");
  expect_kernels(pointwise_of(F::add, 1, 630, kFulls, Walk::broadcast_row), R"(
add [add] elementwise fp32 cores: 1 x 128, 32 registers
  elements 630 active 0.615234375 tail 4; flops 630 #0:2520 #1:2520 -> #2:2520)");
  expect_kernels(pointwise_of(F::add, 3, 40, kFulls, Walk::broadcast_row), R"(
add [broadcast_binary] elementwise fp32 cores: 1 x 128, 18 registers
  elements 120 active 0.46875; flops 120 #0:480 #1:160/480 -> #2:480)");
  // Of what is repeated otherwise a square of the last dimension is known.
  expect_kernels(pointwise_of(F::add, 70, 9, {{DType::fp32, DType::bf16}, DType::fp32}, Walk::broadcast), R"(
add [broadcast_mixed] elementwise fp32 cores: 2 x 128, 18 registers
  elements 630 active 1.23046875 passes 4; flops 630 #0:2520 #1:162/1260 -> #2:2520)");
  expect_kernels(pointwise_of(F::add, 4, 9, kHalves, Walk::broadcast), R"(
add [broadcast_binary] elementwise bf16 cores: 1 x 128, 18 registers
  elements 36 active 0.0703125; flops 36 #0:72 #1:72 -> #2:72)");
  expect_kernels(pointwise_of(F::relu, 70, 9, kFull, Walk::broadcast), R"(
relu [strided_copy] elementwise fp32 cores: 3 x 128, 18 registers
  elements 630 padded 19.6875 active 2.4609375 passes 2; flops 630 #0:2520 -> #1:2520)");
  expect_kernels(pointwise_of(F::relu, 70, 9, kHalf, Walk::strided), R"(
relu [strided_copy] elementwise bf16 cores: 2 x 128, 18 registers
  elements 630 padded 20 active 1.23046875 passes 4; flops 630 #0:1260/1280 -> #1:1260)");
  expect_kernels(pointwise_of(F::mul, 70, 9, kHalves, Walk::strided), R"(
mul [broadcast_binary] elementwise bf16 cores: 2 x 128, 18 registers
  elements 630 padded 20 active 1.23046875 passes 4; flops 630 #0:1260 #1:1260/1280 -> #2:1260)");
}

// 64 rows of 80 in 16 bits: ten blocks of 512 elements, eight columns each, of which seven are found in the L1:
// (1 + 7 / 16) / 8 sectors an element, each as if it had 46 bytes.
TEST(WorkedElementwise, the_last_operand_of_a_transposed_walk_is_read_by_sectors) {
  expect_kernels(pointwise_of(F::add, 64, 80, kHalves, Walk::transposed), R"(
add [strided_copy] elementwise bf16 cores: 10 x 128, 18 registers
  elements 5120 padded 5120 active 10 passes 4; flops 5120 #0:10240 #1:10240/38400 -> #2:10240)");
  expect_kernels(pointwise_of(F::relu, 64, 80, kHalf, Walk::transposed), R"(
relu [strided_copy] elementwise bf16 cores: 10 x 128, 18 registers
  elements 5120 padded 5120 active 10 passes 4; flops 5120 #0:10240/38400 -> #1:10240)");
  expect_kernels(pointwise_of(F::fill, 64, 80, {{}, DType::bf16}, Walk::transposed), R"(
fill [strided_copy] elementwise bf16 cores: 10 x 128, 18 registers
  elements 5120 padded 5120 active 10 passes 4; -> #0:10240)");
  // Of a column alone each element is a sector.
  expect_kernels(pointwise_of(F::mul, 600, 1, kFulls, Walk::transposed), R"(
mul [strided_copy] elementwise fp32 cores: 3 x 128, 18 registers
  elements 600 padded 19 active 2.34375 passes 2; flops 600 #0:2400 #1:2400 -> #2:2400)");
}

// The input is cloned by the driver's copy, then filled in place where the mask says so.
TEST(WorkedElementwise, masked_elements_are_filled_in_a_clone) {
  expect_kernels(pointwise_of(F::masked_fill, 8, 150, {{DType::fp32, DType::boolean}, DType::fp32}), R"(
Memcpy DtoD [copy_device] copy fp32 no pipe: 2 x 128, 32 registers
  elements 1200 passes 0.0732421875; #0:4800 -> #2:4800
masked_fill [masked_fill] elementwise fp32 cores: 2 x 128, 32 registers
  elements 1200 active 1.171875 tail 1; #2:4800 #1:1200 -> #2:4800)");
  expect_kernels(pointwise_of(F::masked_fill, 80, 15, {{DType::fp32, DType::boolean}, DType::fp32}, Walk::broadcast),
                 R"(
Memcpy DtoD [copy_device] copy fp32 no pipe: 2 x 128, 32 registers
  elements 1200 passes 0.0732421875; #0:4800 -> #2:4800
masked_fill [broadcast_binary] elementwise fp32 cores: 5 x 128, 18 registers
  elements 1200 padded 1200 active 4.6875 passes 2; #2:4800 #1:225/1200 -> #2:4800)");
}

TEST(WorkedElementwise, elements_taken_by_index_wait_for_it) {
  expect_kernels(pointwise_of(F::index, 9, 70, {{DType::fp32, DType::int64}, DType::fp32}), R"(
index_elementwise_kernel [index_elements] elementwise fp32 cores: 2 x 128, 32 registers
  elements 630 active 1.23046875 passes 4; #0:2520 #1:72 -> #2:2520/2736)");
  expect_kernels(pointwise_of(F::gather, 90, 70, {{DType::bf16, DType::int64}, DType::bf16}, Walk::strided), R"(
scatter_gather_elementwise_kernel [gather_elements] elementwise bf16 cores: 7 x 128, 32 registers
  elements 6300 active 6.15234375 passes 8; #0:12600 #1:12600/289800 -> #2:12600)");
  expect_kernels(pointwise_of(F::roll, 9, 70, kFull), R"(
index [index_select] elementwise fp32 cores: 2 x 128, 32 registers
  elements 630 active 1.23046875 passes 0.5; #0:2520 -> #1:2520)");
  expect_kernels(pointwise_of(F::index, 3, 30, {{DType::bf16, DType::int64}, DType::bf16}), R"(
index_elementwise_kernel [index_elements] elementwise bf16 cores: 1 x 128, 32 registers
  elements 90 active 0.17578125; #0:180 #1:24 -> #2:180/264)");
}

// Indices are 32 bits of bytes: what is larger comes in halves, of the largest operand's bytes.
TEST(WorkedElementwise, more_than_two_gibibytes_are_halved) {
  expect_kernels(pointwise_of(F::relu, 536870912, 1, kFull), R"(
relu [relu] elementwise fp32 cores: 262144 x 128, 28 registers
  elements 268435456 active 262144; flops 268435456 #0:1.07374182e+09 -> #1:1.07374182e+09
relu [relu] elementwise fp32 cores: 262144 x 128, 28 registers
  elements 268435456 active 262144; flops 268435456 #0:1.07374182e+09 -> #1:1.07374182e+09)");
  expect_kernels(pointwise_of(F::add, 3, 357913943, {{DType::bf16, DType::fp32}, DType::bf16}), R"(
add [unrolled_mixed] elementwise bf16 cores: 524289 x 128, 32 registers
  elements 268435458 active 524288.004 passes 4; flops 268435458 #0:536870916 #1:1.07374183e+09 -> #2:536870916
add [unrolled_mixed] elementwise bf16 cores: 524289 x 128, 32 registers
  elements 268435457 active 524288.002 passes 4; flops 268435457 #0:536870914 #1:1.07374183e+09 -> #2:536870914
add [unrolled_mixed] elementwise bf16 cores: 524289 x 128, 32 registers
  elements 268435457 active 524288.002 passes 4; flops 268435457 #0:536870914 #1:1.07374183e+09 -> #2:536870914
add [unrolled_mixed] elementwise bf16 cores: 524289 x 128, 32 registers
  elements 268435457 active 524288.002 passes 4; flops 268435457 #0:536870914 #1:1.07374183e+09 -> #2:536870914)");
  expect_kernels(pointwise_of(F::cast, 3, 357913943, {{DType::fp32}, DType::bf16}), R"(
cast [cast_down] copy bf16 cores: 262145 x 128, 32 registers
  elements 268435458 active 262144.002; #0:1.07374183e+09 -> #1:536870916
cast [cast_down] copy bf16 cores: 262145 x 128, 32 registers
  elements 268435457 active 262144.001; #0:1.07374183e+09 -> #1:536870914
cast [cast_down] copy bf16 cores: 262145 x 128, 32 registers
  elements 268435457 active 262144.001; #0:1.07374183e+09 -> #1:536870914
cast [cast_down] copy bf16 cores: 262145 x 128, 32 registers
  elements 268435457 active 262144.001; #0:1.07374183e+09 -> #1:536870914)");
}

TEST(WorkedElementwise, ops_without_elements_or_of_four_tensors_are_refused) {
  EXPECT_THROW(expect_kernels(pointwise_of(F::add, 0, 5, kFulls), ""), std::invalid_argument);
  EXPECT_THROW(expect_kernels(pointwise_of(F::add, 5, 0, kFulls), ""), std::invalid_argument);
  Pointwise four = pointwise_of(F::add, 2, 5, kFulls);
  four.input_count = 4;
  EXPECT_THROW(expect_kernels(four, ""), std::invalid_argument);
}

/// Kernel class, name, FLOPs an element, registers in 16 bits and in 32.
struct FunctionRow {
  F function;
  std::size_t inputs;
  std::string_view kind, name;
  double flops;
  int half, full;
};
constexpr FunctionRow kFunctions[]{{F::add, 2, "add", "add", 1, 34, 32},
                                   {F::add_in_place, 2, "add", "add_", 1, 34, 32},
                                   {F::mul, 2, "mul", "mul", 1, 40, 32},
                                   {F::mul, 1, "scale", "mul", 1, 32, 32},
                                   {F::scale, 1, "scale", "mul", 1, 32, 32},
                                   {F::gelu, 1, "gelu", "gelu", 14, 32, 31},
                                   {F::gelu_tanh, 1, "gelu", "gelu_tanh", 14, 32, 32},
                                   {F::gelu_backward, 2, "gelu_backward", "gelu_backward", 20, 32, 32},
                                   {F::gelu_tanh_backward, 2, "gelu_backward", "gelu_backward", 20, 32, 32},
                                   {F::silu, 1, "silu", "silu", 5, 32, 32},
                                   {F::silu_backward, 2, "silu_backward", "silu_backward", 9, 40, 40},
                                   {F::relu, 1, "relu", "relu", 1, 32, 28},
                                   {F::relu_backward, 2, "mul", "threshold_backward", 1, 40, 32},
                                   {F::tanh, 1, "tanh", "tanh", 10, 32, 32},
                                   {F::tanh_backward, 2, "mul", "tanh_backward", 3, 32, 32},
                                   {F::pow2, 1, "unary", "pow", 1, 32, 32},
                                   {F::square_root, 1, "unary", "sqrt", 1, 32, 32},
                                   {F::reciprocal, 1, "unary", "reciprocal", 1, 32, 32},
                                   {F::divide, 2, "mul", "div", 1, 40, 32},
                                   {F::divide, 1, "scale", "div", 1, 32, 32},
                                   {F::equal, 1, "unary", "eq", 1, 32, 32},
                                   {F::fill, 0, "fill", "fill", 0, 16, 16},
                                   {F::dropout_backward, 2, "dropout_backward", "masked_scale", 2, 40, 34},
                                   {F::clamp, 1, "relu", "clamp", 2, 32, 28},
                                   {F::rope, 2, "mul", "rope", 6, 40, 40},
                                   {F::complex_mul, 2, "mul", "mul", 4, 40, 40},
                                   {F::power, 1, "power", "pow", 20, 32, 32},
                                   {F::other, 2, "mul", "elementwise", 1, 40, 32},
                                   {F::other, 1, "unary", "elementwise", 1, 40, 32}};

TEST(WorkedElementwise, every_function_has_the_kernel_the_arithmetic_and_the_registers_of_the_table) {
  for (const FunctionRow& row : kFunctions)
    for (const DType type : {DType::bf16, DType::fp16, DType::fp32}) {
      const Operands operands{std::vector<DType>(row.inputs, type), type};
      const LoweredOp made =
          lower_by_shape(pointwise_of(row.function, 1, 2048, operands), testing_support::made_up_chip(), Software{});
      ASSERT_EQ(made.launches.size(), 1u);
      const KernelLaunch& launch = made.launches[0];
      EXPECT_EQ(launch.name, row.name);
      EXPECT_EQ(name_of(static_cast<MemoryBoundKernel>(std::get<MemoryBoundWork>(launch.work).kernel_class)), row.kind)
          << row.name;
      EXPECT_EQ(launch.flops, 2048.0 * row.flops) << row.name;
      EXPECT_EQ(launch.registers_per_thread, is_half(type) ? row.half : row.full) << row.name;
      EXPECT_EQ(launch.grid[0], 2) << row.name;
    }
}

// Vectors of 16 bytes where they divide the elements: 8 of 16 bits, 4, 2. A draw makes four numbers.
TEST(WorkedElementwise, dropout_draws_by_vectors_or_for_elements_a_grid_apart) {
  expect_kernels(Dropout{DType::bf16, 40000}, R"(
fused_dropout [dropout] elementwise bf16 cores: 80 x 256, 55 registers
  elements 40000 padded 5000 active 40 passes 2; flops 80000 #0:80000 -> #1:80000 #2:40000)");
  expect_kernels(Dropout{DType::fp16, 40000}, R"(
fused_dropout [dropout] elementwise fp16 cores: 80 x 256, 56 registers
  elements 40000 padded 5000 active 40 passes 2; flops 80000 #0:80000 -> #1:80000 #2:40000)");
  expect_kernels(Dropout{DType::bf16, 40004}, R"(
fused_dropout [dropout] elementwise bf16 cores: 80 x 256, 50 registers
  elements 40004 padded 10001 active 40; flops 80008 #0:80008 -> #1:80008 #2:40004)");
  expect_kernels(Dropout{DType::fp16, 40004}, R"(
fused_dropout [dropout] elementwise fp16 cores: 80 x 256, 52 registers
  elements 40004 padded 10001 active 40; flops 80008 #0:80008 -> #1:80008 #2:40004)");
  expect_kernels(Dropout{DType::fp32, 40004}, R"(
fused_dropout [dropout] elementwise fp32 cores: 80 x 256, 51 registers
  elements 40004 padded 10001 active 40; flops 80008 #0:160016 -> #1:160016 #2:40004)");
  expect_kernels(Dropout{DType::fp32, 40002}, R"(
fused_dropout [dropout] elementwise fp32 cores: 80 x 256, 48 registers
  elements 40002 padded 20001 active 79; flops 80004 #0:160008 -> #1:160008 #2:40002)");
  expect_kernels(Dropout{DType::fp16, 40001}, R"(
fused_dropout [dropout] elementwise fp16 cores: 80 x 256, 56 registers
  elements 40001 padded 31129.6 active 80 tail 1; flops 80002 #0:80002 -> #1:80002 #2:40001)");
  expect_kernels(Dropout{DType::fp32, 101}, R"(
fused_dropout [dropout] elementwise fp32 cores: 1 x 256, 56 registers
  elements 101 padded 153.52 active 1 tail 1; flops 202 #0:404 -> #1:404 #2:101)");
  expect_kernels(Dropout{DType::bf16, 4000000}, R"(
fused_dropout [dropout] elementwise bf16 cores: 80 x 256, 55 registers
  elements 4000000 padded 500000 active 80 passes 50; flops 8000000 #0:8000000 -> #1:8000000 #2:4000000)");
  EXPECT_THROW(expect_kernels(Dropout{DType::bf16, 0}, ""), std::invalid_argument);
}

}  // namespace
}  // namespace ridgeline::worked_elementwise

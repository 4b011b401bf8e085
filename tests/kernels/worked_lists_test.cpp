// Kernels over lists of tensors, generated kernels and collectives worked out by hand: every kernel whole.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_lists {
namespace {

using testing_support::expect_kernels;
using F = MultiTensorFunction;

MultiTensor list_of(F function, DType type, std::vector<std::int64_t> sizes, bool scalars = false) {
  return {.function = function,
          .type = type,
          .sizes = std::make_shared<const std::vector<std::int64_t>>(std::move(sizes)),
          .scalar_per_tensor = scalars};
}

/// Chunks of 4,096 elements, three blocks and two tensors a launch.
Software small_launches() {
  Software software;
  software.foreach_chunk = 4096;
  software.foreach_blocks_per_launch = 3;
  software.foreach_tensors_per_launch = {2, 2, 2};
  return software;
}

// A tensor of 10,000 has three chunks, which fill a launch: 4,096 of one are two turns of 512 threads by four.
TEST(WorkedLists, launches_end_with_their_blocks_or_with_their_tensors) {
  expect_kernels(list_of(F::add, DType::fp32, {10000, 100, 200, 300}), R"(
foreach_add [multi_tensor_add] optimizer fp32 cores: 3 x 512, 32 registers
  elements 10000 passes 2; flops 20000 list0[0..1]:40000 list1[0..1]:40000 -> list0[0..1]:40000
foreach_add [multi_tensor_add] optimizer fp32 cores: 2 x 512, 32 registers
  elements 300; flops 600 list0[1..3]:1200 list1[1..3]:1200 -> list0[1..3]:1200
foreach_add [multi_tensor_add] optimizer fp32 cores: 1 x 512, 32 registers
  elements 300; flops 600 list0[3..4]:1200 list1[3..4]:1200 -> list0[3..4]:1200)",
                 small_launches());
  // 20,000 have five chunks: three in the first launch; with two left the tensor is the first of the next one's two.
  expect_kernels(list_of(F::lerp, DType::bf16, {20000, 8, 4}), R"(
foreach_lerp [multi_tensor_lerp] optimizer bf16 cores: 3 x 512, 32 registers
  elements 12288 passes 2; flops 36864 list0[0..0.6144]:24576 list1[0..0.6144]:24576 -> list0[0..0.6144]:24576
foreach_lerp [multi_tensor_lerp] optimizer bf16 cores: 3 x 512, 32 registers
  elements 7720 passes 2; flops 23160 list0[0.6144..2]:15440 list1[0.6144..2]:15440 -> list0[0.6144..2]:15440
foreach_lerp [multi_tensor_lerp] optimizer bf16 cores: 1 x 512, 32 registers
  elements 4; flops 12 list0[2..3]:8 list1[2..3]:8 -> list0[2..3]:8)",
                 small_launches());
  // Nothing of an empty tensor is in any launch, and it is none of the two.
  expect_kernels(list_of(F::mul, DType::fp32, {60, 0, 61}), R"(
foreach_mul [multi_tensor_mul] optimizer fp32 cores: 2 x 512, 27 registers
  elements 60 padded 61 passes 1.2 tail 1; flops 121 list0[0..3]:484 -> list0[0..3]:484)",
                 small_launches());
  // A last chunk that fills the third block leaves nothing for another launch.
  expect_kernels(list_of(F::add_scalar, DType::fp32, {12288}), R"(
foreach_add [multi_tensor_mul] optimizer fp32 cores: 3 x 512, 27 registers
  elements 12288 passes 2; flops 12288 list0[0..1]:49152 -> list0[0..1]:49152)",
                 small_launches());
}

// Of 40 and 6 elements the first is taken by vectors of four, the other one by one. `list1` is the second operand.
TEST(WorkedLists, operands_are_those_of_the_function) {
  expect_kernels(list_of(F::add, DType::fp32, {40, 6}), R"(
foreach_add [multi_tensor_add] optimizer fp32 cores: 2 x 512, 32 registers
  elements 40 padded 6 passes 1.2 tail 1; flops 92 list0[0..2]:184 list1[0..2]:184 -> list0[0..2]:184)",
                 small_launches());
  expect_kernels(list_of(F::mul, DType::fp32, {40, 6}), R"(
foreach_mul [multi_tensor_mul] optimizer fp32 cores: 2 x 512, 27 registers
  elements 40 padded 6 passes 1.2 tail 1; flops 46 list0[0..2]:184 -> list0[0..2]:184)",
                 small_launches());
  expect_kernels(list_of(F::lerp, DType::fp32, {40, 6}), R"(
foreach_lerp [multi_tensor_lerp] optimizer fp32 cores: 2 x 512, 32 registers
  elements 40 padded 6 passes 1.2 tail 1; flops 138 list0[0..2]:184 list1[0..2]:184 -> list0[0..2]:184)",
                 small_launches());
  expect_kernels(list_of(F::addcmul, DType::fp32, {40, 6}), R"(
foreach_addcmul [multi_tensor_addcmul] optimizer fp32 cores: 2 x 512, 32 registers
  elements 40 padded 6 passes 1.2 tail 1; flops 138 list0[0..2]:184 list1[0..2]:184 -> list0[0..2]:184)",
                 small_launches());
  expect_kernels(list_of(F::addcdiv, DType::fp32, {40, 6}), R"(
foreach_addcdiv [multi_tensor_addcdiv] optimizer fp32 cores: 2 x 512, 36 registers
  elements 40 padded 6 passes 1.2 tail 1; flops 138 list0[0..2]:184 list1[0..2]:184 list2[0..2]:184 -> list0[0..2]:184)",
                 small_launches());
  expect_kernels(list_of(F::square_root, DType::fp32, {40, 6}), R"(
foreach_sqrt [multi_tensor_root] optimizer fp32 cores: 2 x 512, 32 registers
  elements 40 padded 6 passes 1.2 tail 1; flops 46 list0[0..2]:184 -> list1[0..2]:184)",
                 small_launches());
  expect_kernels(list_of(F::divide, DType::fp32, {40, 6}), R"(
foreach_div [multi_tensor_root] optimizer fp32 cores: 2 x 512, 34 registers
  elements 40 padded 6 passes 1.2 tail 1; flops 46 list0[0..2]:184 -> list0[0..2]:184)",
                 small_launches());
  expect_kernels(list_of(F::unscale, DType::fp32, {40, 6}), R"(
amp_unscale [multi_tensor_mul] optimizer fp32 cores: 2 x 512, 32 registers
  elements 40 padded 6 passes 1.2 tail 1; flops 92 list0[0..2]:184 -> list0[0..2]:184)",
                 small_launches());
  expect_kernels(list_of(F::fused_adamw, DType::fp32, {40, 6}), R"(
fused_adamw [multi_tensor_adam] optimizer fp32 cores: 2 x 512, 60 registers
  elements 40 padded 6 passes 1.2 tail 1; flops 736 list0[0..2]:184 list1[0..2]:184 list2[0..2]:184 list3[0..2]:184 -> list0[0..2]:184 list2[0..2]:184 list3[0..2]:184)",
                 small_launches());
  expect_kernels(list_of(F::fused_adam, DType::fp32, {40, 6}), R"(
fused_adam [multi_tensor_adam] optimizer fp32 cores: 2 x 512, 60 registers
  elements 40 padded 6 passes 1.2 tail 1; flops 644 list0[0..2]:184 list1[0..2]:184 list2[0..2]:184 list3[0..2]:184 -> list0[0..2]:184 list2[0..2]:184 list3[0..2]:184)",
                 small_launches());
  expect_kernels(list_of(F::fused_sgd, DType::fp32, {40, 6}), R"(
fused_sgd [multi_tensor_addcmul] optimizer fp32 cores: 2 x 512, 40 registers
  elements 40 padded 6 passes 1.2 tail 1; flops 184 list0[0..2]:184 list1[0..2]:184 list2[0..2]:184 -> list0[0..2]:184 list2[0..2]:184)",
                 small_launches());
  expect_kernels(list_of(F::add_scalar, DType::fp32, {40, 6}), R"(
foreach_add [multi_tensor_mul] optimizer fp32 cores: 2 x 512, 27 registers
  elements 40 padded 6 passes 1.2 tail 1; flops 46 list0[0..2]:184 -> list0[0..2]:184)",
                 small_launches());
  expect_kernels(list_of(F::copy, DType::fp32, {40, 6}), R"(
foreach_copy [multi_tensor_mul] optimizer fp32 cores: 2 x 512, 32 registers
  elements 40 padded 6 passes 1.2 tail 1; list0[0..2]:184 -> list1[0..2]:184)",
                 small_launches());
}

TEST(WorkedLists, norms_add_partial_sums_up_at_last) {
  expect_kernels(list_of(F::norm, DType::bf16, {10000, 100, 200}), R"(
fill [fill] optimizer fp32 cores: 1 x 128, 16 registers
  elements 9; -> t:36
foreach_norm [multi_tensor_norm] optimizer bf16 cores: 3 x 512, 32 registers shared 2048
  elements 10000 passes 2; flops 20000 list0[0..1]:20000 -> t:12
foreach_norm [multi_tensor_norm] optimizer bf16 cores: 2 x 512, 32 registers shared 2048
  elements 300; flops 600 list0[1..3]:600 -> t:8
lpnorm_cleanup [tiny] optimizer fp32 cores: 3 x 512, 16 registers shared 2048
  passes 1.5365; t:36 ->)",
                 small_launches());
}

// A last kernel of up to 400 tensors a launch: log2 of 1, 2 .. tensors and of their chunks lengthen it.
TEST(WorkedLists, last_kernels_of_norms_take_longer_the_more_there_is_beside_them) {
  const auto passes = [](std::size_t tensors, std::int64_t size) {
    std::vector<double> all;
    const LoweredOp made = lower_by_shape(list_of(F::norm, DType::fp32, std::vector<std::int64_t>(tensors, size)),
                                          testing_support::made_up_chip(), Software{});
    for (const KernelLaunch& launch : made.launches)
      if (launch.name == "lpnorm_cleanup") all.push_back(std::get<MemoryBoundWork>(launch.work).iterations);
    return all;
  };
  const auto expect_passes = [](const std::vector<double>& made, const std::vector<double>& wanted) {
    ASSERT_EQ(made.size(), wanted.size());
    for (std::size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(made[i], wanted[i], 1e-12);
  };
  expect_passes(passes(1, 65536), {1.1 + 0.0035});
  expect_passes(passes(5, 65537), {1.1 + 0.063 * 3 + 0.0035 * 5 + 0.15});
  expect_passes(passes(400, 300000), {1.1 + 0.063 * 9 + 0.0035 * 400 + 0.15 * 3});
  expect_passes(passes(403, 10), {1.1 + 0.063 * 9 + 0.0035 * 400, 1.1 + 0.063 * 2 + 0.0035 * 3});
}

// By lists 1 to 5: 110, 64, 48, 36, 30 tensors a launch; a scalar each leaves room for 96 of one list.
TEST(WorkedLists, a_launch_takes_as_many_tensors_as_its_lists_leave_room_for) {
  const auto launches = [](F function, std::size_t tensors, bool scalars = false, const Software& software = {}) {
    return lower_by_shape(list_of(function, DType::fp32, std::vector<std::int64_t>(tensors, 8), scalars),
                          testing_support::made_up_chip(), software)
        .launches.size();
  };
  struct Row {
    F function;
    bool scalars;
    std::size_t most;
  };
  for (const Row& row :
       {Row{F::mul, false, 110}, Row{F::mul, true, 96}, Row{F::divide, false, 110}, Row{F::divide, true, 96},
        Row{F::unscale, true, 110}, Row{F::add, false, 64}, Row{F::lerp, false, 64}, Row{F::square_root, false, 64},
        Row{F::copy, false, 64}, Row{F::addcmul, false, 48}, Row{F::addcmul, true, 48}, Row{F::addcdiv, true, 48},
        Row{F::fused_sgd, false, 48}, Row{F::fused_adam, false, 36}, Row{F::fused_adamw, false, 36}}) {
    EXPECT_EQ(launches(row.function, row.most, row.scalars), 1u) << static_cast<int>(row.function);
    EXPECT_EQ(launches(row.function, row.most + 1, row.scalars), 2u) << static_cast<int>(row.function);
  }
  Software few;
  few.foreach_tensors_per_launch = {50};
  EXPECT_EQ(launches(F::mul, 50, true, few), 1u) << "fewer than 96 stay";
  EXPECT_EQ(launches(F::mul, 51, true, few), 2u);
  EXPECT_EQ(launches(F::fused_adam, 51, false, few), 2u) << "the last number goes for more lists";
  few.foreach_tensors_per_launch = {};
  EXPECT_THROW(launches(F::mul, 5, false, few), std::invalid_argument);
  EXPECT_THROW(expect_kernels(list_of(F::mul, DType::fp32, {}), ""), std::invalid_argument);
  EXPECT_THROW(expect_kernels(MultiTensor{}, ""), std::invalid_argument);
}

FusedKernel fused_of(FusedKernel::Shape shape, std::int64_t rows, std::int64_t cols) {
  return {.name = "add",
          .shape = shape,
          .rows = rows,
          .cols = cols,
          .type = DType::bf16,
          .reads = {2 * rows * cols, 7},
          .writes = {2 * rows * cols}};
}

// Blocks of 128 elements, of 512 from 65,536 on, of 1,024 from 2^20 on.
TEST(WorkedGeneratedKernels, points_come_in_blocks_that_grow_with_them) {
  using enum FusedKernel::Shape;
  expect_kernels(fused_of(pointwise, 5, 51), R"(
triton_poi_fused_add [triton_pointwise] elementwise bf16 cores: 2 x 128, 24 registers
  elements 255 passes 0.99609375; #0:510 #1:7 -> #2:510)");
  expect_kernels(fused_of(pointwise, 3, 21845), R"(
triton_poi_fused_add [triton_pointwise] elementwise bf16 cores: 512 x 128, 24 registers
  elements 65535 passes 0.999984741; #0:131070 #1:7 -> #2:131070)");
  expect_kernels(fused_of(pointwise, 256, 256), R"(
triton_poi_fused_add [triton_pointwise] elementwise bf16 cores: 128 x 256, 24 registers
  elements 65536 passes 2; #0:131072 #1:7 -> #2:131072)");
  expect_kernels(fused_of(pointwise, 3, 349525), R"(
triton_poi_fused_add [triton_pointwise] elementwise bf16 cores: 2048 x 256, 24 registers
  elements 1048575 passes 1.99999809; #0:2097150 #1:7 -> #2:2097150)");
  FusedKernel gathering = fused_of(pointwise, 1024, 1024);
  gathering.gathers = true;
  expect_kernels(gathering, R"(
triton_poi_fused_add [triton_gather] elementwise bf16 cores: 1024 x 128, 24 registers
  elements 1048576 passes 8; #0:2097152 #1:7 -> #2:2097152)");
}

// Warps side by side on short rows, blocks of 256 threads on few elements.
TEST(WorkedGeneratedKernels, rows_are_kept_in_registers) {
  using enum FusedKernel::Shape;
  expect_kernels(fused_of(rows, 7, 300), R"(
triton_per_fused_add [triton_rows] normalization bf16 cores: 7 x 256, 32 registers shared 64
  elements 2100 passes 1.171875; #0:4200 #1:7 -> #2:4200)");
  expect_kernels(fused_of(rows, 512, 512), R"(
triton_per_fused_add [triton_rows] normalization bf16 cores: 256 x 64, 32 registers shared 64
  elements 262144 passes 16; #0:524288 #1:7 -> #2:524288)");
  expect_kernels(fused_of(rows, 511, 513), R"(
triton_per_fused_add [triton_rows] normalization bf16 cores: 511 x 256, 32 registers shared 64
  elements 262143 passes 2.00390625; #0:524286 #1:7 -> #2:524286)");
  expect_kernels(fused_of(rows, 5000, 250), R"(
triton_per_fused_add [triton_rows] normalization bf16 cores: 1250 x 32, 72 registers shared 64
  elements 1250000 passes 31.25; #0:2500000 #1:7 -> #2:2500000)");
  expect_kernels(fused_of(rows, 5000, 513), R"(
triton_per_fused_add [triton_rows] normalization bf16 cores: 5000 x 32, 90 registers shared 64
  elements 2565000 passes 16.03125; #0:5130000 #1:7 -> #2:5130000)");
  expect_kernels(fused_of(rows, 1024, 1024), R"(
triton_per_fused_add [triton_rows] normalization bf16 cores: 1024 x 32, 90 registers shared 64
  elements 1048576 passes 32; #0:2097152 #1:7 -> #2:2097152)");
  expect_kernels(fused_of(rows, 1000, 1025), R"(
triton_per_fused_add [triton_rows] normalization bf16 cores: 1000 x 64, 32 registers shared 64
  elements 1025000 passes 16.015625; #0:2050000 #1:7 -> #2:2050000)");
  const auto registers = [](std::int64_t cols, std::int64_t arithmetic) {
    FusedKernel op = fused_of(rows, 1 << 20, cols);
    op.arithmetic = arithmetic;
    return lower_by_shape(op, testing_support::made_up_chip(), {}).launches[0].registers_per_thread;
  };
  EXPECT_EQ(registers(512, 149), 72);
  EXPECT_EQ(registers(512, 150), 130) << "random numbers take registers";
  EXPECT_EQ(registers(513, 149), 90);
  EXPECT_EQ(registers(513, 150), 200);
}

// A block for every 16 rows, from 1 to 1,024, walks through them and keeps the sums of their columns.
TEST(WorkedGeneratedKernels, rows_that_give_sums_of_columns_are_walked_by_blocks) {
  const auto sums_of = [](std::int64_t rows, std::int64_t cols) {
    FusedKernel op = fused_of(FusedKernel::Shape::rows, rows, cols);
    op.column_results = 1;
    return op;
  };
  expect_kernels(sums_of(15, 512), R"(
triton_per_fused_add [triton_row_blocks] normalization bf16 cores: 1 x 64, 220 registers shared 64
  elements 7680 passes 120; #0:15360 #1:7 -> #2:15360)");
  expect_kernels(sums_of(100, 513), R"(
triton_per_fused_add [triton_row_blocks] normalization bf16 cores: 6 x 128, 80 registers shared 64
  elements 51300 passes 66.796875; #0:102600 #1:7 -> #2:102600)");
  expect_kernels(sums_of(20000, 100), R"(
triton_per_fused_add [triton_row_blocks] normalization bf16 cores: 1024 x 64, 220 registers shared 64
  elements 2000000 passes 30.5175781; #0:4000000 #1:7 -> #2:4000000)");
}

// 64 columns a block and as many stretches of rows as the first result has partial sums of four bytes a column.
TEST(WorkedGeneratedKernels, long_rows_are_walked_and_columns_are_added_in_stretches) {
  using enum FusedKernel::Shape;
  expect_kernels(fused_of(long_rows, 7, 6000), R"(
triton_red_fused_add [triton_long_rows] normalization bf16 cores: 7 x 512, 32 registers shared 128
  elements 42000 passes 3; #0:84000 #1:7 -> #2:84000)");
  FusedKernel sums = fused_of(columns, 1000, 100);
  sums.writes = {4 * 100 * 7};
  expect_kernels(sums, R"(
triton_red_fused_add [triton_columns] normalization bf16 cores: 14 x 128, 32 registers shared 2048
  elements 100000 passes 9; #0:200000 #1:7 -> #2:2800)");
  sums.writes = {};
  expect_kernels(sums, R"(
triton_red_fused_add [triton_columns] normalization bf16 cores: 2 x 128, 32 registers shared 2048
  elements 100000 passes 63; #0:200000 #1:7 ->)");
  sums.writes = {40};
  expect_kernels(sums, R"(
triton_red_fused_add [triton_columns] normalization bf16 cores: 2 x 128, 32 registers shared 2048
  elements 100000 passes 63; #0:200000 #1:7 -> #2:40)");
  EXPECT_THROW(expect_kernels(fused_of(rows, 0, 3), ""), std::invalid_argument);
  EXPECT_THROW(expect_kernels(fused_of(rows, 3, 0), ""), std::invalid_argument);
}

// Instructions of arithmetic count in those that an element has in the kernel's class; rows of odd length have ten
// more.
TEST(WorkedGeneratedKernels, arithmetic_counts_as_further_elements) {
  using enum FusedKernel::Shape;
  const auto made = [](FusedKernel op, std::int64_t arithmetic) {
    op.arithmetic = arithmetic;
    return lower_by_shape(op, testing_support::made_up_chip(), {}).launches.at(0);
  };
  const auto share = [](MemoryBoundKernel kind, double arithmetic) {
    return 1.0 + arithmetic / constants_of(kind).instructions_full;
  };
  const auto work = [](const KernelLaunch& launch) { return std::get<MemoryBoundWork>(launch.work); };
  const KernelLaunch point = made(fused_of(pointwise, 30, 20), 12), row = made(fused_of(rows, 30, 20), 12),
                     even = made(fused_of(long_rows, 3, 6000), 12), odd = made(fused_of(long_rows, 3, 6001), 12);
  EXPECT_DOUBLE_EQ(work(point).elements, 600.0 * share(MemoryBoundKernel::triton_pointwise, 12));
  EXPECT_DOUBLE_EQ(work(point).iterations, 600.0 / (5 * 128) * share(MemoryBoundKernel::triton_pointwise, 12));
  EXPECT_EQ(point.flops, 7200.0);
  EXPECT_EQ(point.time_class, TimeClass::elementwise);
  EXPECT_DOUBLE_EQ(work(row).elements, 600.0 * share(MemoryBoundKernel::triton_rows, 12));
  EXPECT_DOUBLE_EQ(work(row).iterations, 600.0 / (30 * 256) * share(MemoryBoundKernel::triton_rows, 12));
  EXPECT_EQ(row.time_class, TimeClass::normalization);
  EXPECT_DOUBLE_EQ(work(even).elements, 18000.0 * share(MemoryBoundKernel::triton_long_rows, 12));
  EXPECT_DOUBLE_EQ(work(odd).elements, 18003.0 * share(MemoryBoundKernel::triton_long_rows, 22));
  EXPECT_EQ(work(odd).iterations, 3.0) << "2,048 columns a turn";
  EXPECT_EQ(odd.flops, 18003.0 * 12);
}

// What goes in and out: of a gather a rank sends its part, of a scatter it gets its part.
TEST(WorkedCollectives, a_collective_is_a_kernel_of_its_bytes) {
  struct Row {
    CollectiveKind kind;
    std::string_view listing;
  };
  for (const Row& row : {Row{CollectiveKind::all_reduce, R"(
ncclDevKernel_AllReduce communication bf16 no pipe: 1 x 512, 96 registers
  collective 400; #0:400 -> #1:400)"},
                         Row{CollectiveKind::all_gather, R"(
ncclDevKernel_AllGather communication bf16 no pipe: 1 x 512, 96 registers
  collective 400; #0:100 -> #1:400)"},
                         Row{CollectiveKind::reduce_scatter, R"(
ncclDevKernel_ReduceScatter communication bf16 no pipe: 1 x 512, 96 registers
  collective 400; #0:400 -> #1:100)"},
                         Row{CollectiveKind::broadcast, R"(
ncclDevKernel_Broadcast communication bf16 no pipe: 1 x 512, 96 registers
  collective 400; #0:400 -> #1:400)"},
                         Row{CollectiveKind::reduce, R"(
ncclDevKernel_Reduce communication bf16 no pipe: 1 x 512, 96 registers
  collective 400; #0:400 -> #1:400)"},
                         Row{CollectiveKind::all_to_all, R"(
ncclDevKernel_SendRecv communication bf16 no pipe: 1 x 512, 96 registers
  collective 400; #0:400 -> #1:400)"},
                         Row{CollectiveKind::send_recv, R"(
ncclDevKernel_SendRecv communication bf16 no pipe: 1 x 512, 96 registers
  collective 400; #0:400 -> #1:400)"},
                         Row{CollectiveKind::barrier, R"(
ncclDevKernel_AllReduce communication bf16 no pipe: 1 x 512, 96 registers
  collective 400; -> #0:400)"},
                         Row{CollectiveKind::peer_copy, R"(
ncclDevKernel_PeerCopy communication bf16 no pipe: 1 x 512, 96 registers
  collective 400; #0:400 -> #1:400)"}})
    expect_kernels(Collective{.kind = row.kind, .type = DType::bf16, .ranks = 4, .bytes = 400}, row.listing);
  EXPECT_THROW(expect_kernels(Collective{.ranks = 0, .bytes = 4}, ""), std::invalid_argument);
  EXPECT_THROW(expect_kernels(Collective{.ranks = 2, .bytes = -1}, ""), std::invalid_argument);
}

}  // namespace
}  // namespace ridgeline::worked_lists

// Copies worked out by hand: every kernel whole, on both sides of each edge of sim/kernels/memory_bound/copy.cpp.
#include <gtest/gtest.h>

#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_copies {
namespace {

using testing_support::expect_kernels;

Copy copy_of(CopyKind kind, DType type, std::int64_t rows, std::int64_t cols, std::int64_t parts = 1) {
  return {.kind = kind, .type = type, .rows = rows, .cols = cols, .parts = parts};
}

// The driver's kernel: a block of 1,024 elements, passes of 64 KiB below 1 MiB; from there one pass, and a second
// kernel for what is left of pages of 4 KiB.
TEST(WorkedCopies, the_drivers_kernel_counts_its_bytes_below_a_mebibyte_and_its_pages_from_there) {
  expect_kernels(copy_of(CopyKind::contiguous, DType::fp32, 7, 5), R"(
Memcpy DtoD [copy_device] copy fp32 no pipe: 1 x 128, 32 registers
  elements 35 passes 0.00213623047; #0:140 -> #1:140)");
  expect_kernels(copy_of(CopyKind::contiguous, DType::bf16, 1, 1025), R"(
Memcpy DtoD [copy_device] copy bf16 no pipe: 2 x 128, 32 registers
  elements 1025 passes 0.0312805176; #0:2050 -> #1:2050)");
  expect_kernels(copy_of(CopyKind::contiguous, DType::fp32, 3, 87381), R"(
Memcpy DtoD [copy_device] copy fp32 no pipe: 256 x 128, 32 registers
  elements 262143 passes 15.999939; #0:1048572 -> #1:1048572)");
  expect_kernels(copy_of(CopyKind::contiguous, DType::fp32, 512, 512), R"(
Memcpy DtoD [copy_device] copy fp32 no pipe: 256 x 128, 32 registers
  elements 262144; #0:1048576 -> #1:1048576)");
  expect_kernels(copy_of(CopyKind::contiguous, DType::fp32, 5, 52429), R"(
Memcpy DtoD [copy_device] copy fp32 no pipe: 257 x 128, 32 registers
  elements 262145 tail 1; #0:1048580 -> #1:1048580)");
}

TEST(WorkedCopies, permuted_views_are_copied_in_whole_rows_and_transposed_ones_by_sectors) {
  expect_kernels(copy_of(CopyKind::permute, DType::bf16, 9, 7), R"(
copy_permuted [strided_copy] copy bf16 no pipe: 1 x 128, 18 registers
  elements 63 padded 2; #0:126/128 -> #1:126)");
  expect_kernels(copy_of(CopyKind::permute, DType::fp32, 11, 100), R"(
copy_permuted [strided_copy] copy fp32 no pipe: 5 x 128, 18 registers
  elements 1100 padded 34.375 passes 2; #0:4400 -> #1:4400)");
  expect_kernels(copy_of(CopyKind::permute, DType::int64, 3, 300), R"(
copy_permuted [strided_copy] copy int64 no pipe: 4 x 128, 18 registers
  elements 900 padded 57 passes 2; #0:7200 -> #1:7200)");
  expect_kernels(copy_of(CopyKind::transpose, DType::fp32, 2000, 3), R"(
copy_transposed [strided_copy] copy fp32 no pipe: 24 x 128, 18 registers
  elements 6000 padded 632.8125 passes 2; #0:24000/24750 -> #1:24000)");
  expect_kernels(copy_of(CopyKind::transpose, DType::fp32, 8, 3200), R"(
copy_transposed [strided_copy] copy fp32 no pipe: 100 x 128, 18 registers
  elements 25600 padded 6400 passes 2; #0:102400/819200 -> #1:102400)");
  expect_kernels(copy_of(CopyKind::transpose, DType::bf16, 64, 80), R"(
copy_transposed [strided_copy] copy bf16 no pipe: 10 x 128, 18 registers
  elements 5120 padded 5120 passes 4; #0:10240/38400 -> #1:10240)");
  expect_kernels(copy_of(CopyKind::transpose, DType::bf16, 128, 1000), R"(
copy_transposed [strided_copy] copy bf16 no pipe: 250 x 128, 18 registers
  elements 128000 padded 128000 passes 4; #0:256000/6144000 -> #1:256000)");
  // Ten and sixteen blocks an SM open more lines than its L1 has: none is found again.
  expect_kernels(copy_of(CopyKind::transpose, DType::bf16, 64, 800), R"(
copy_transposed [strided_copy] copy bf16 no pipe: 100 x 128, 18 registers
  elements 51200 padded 51200 passes 4; #0:102400/2457600 -> #1:102400)");
  expect_kernels(copy_of(CopyKind::transpose, DType::bf16, 32, 4000), R"(
copy_transposed [strided_copy] copy bf16 no pipe: 250 x 128, 18 registers
  elements 128000 padded 64000 passes 4; #0:256000/3072000 -> #1:256000)");
  expect_kernels(copy_of(CopyKind::transpose, DType::bf16, 5, 3), R"(
copy_transposed [strided_copy] copy bf16 no pipe: 1 x 128, 18 registers
  elements 15 padded 1; #0:30/48 -> #1:30)");
  expect_kernels(copy_of(CopyKind::permute, DType::bf16, 1073741827, 1), R"(
copy_permuted [strided_copy] copy bf16 no pipe: 1048577 x 128, 18 registers
  elements 536870914 padded 16777216.1 passes 4; #0:1.07374183e+09 -> #1:1.07374183e+09
copy_permuted [strided_copy] copy bf16 no pipe: 1048577 x 128, 18 registers
  elements 536870913 padded 16777216 passes 4; #0:1.07374183e+09 -> #1:1.07374183e+09)");
  expect_kernels(copy_of(CopyKind::permute, DType::uint8, 2147483647, 1), R"(
copy_permuted [strided_copy] copy uint8 no pipe: 4194304 x 128, 18 registers
  elements 2.14748365e+09 padded 67108864 passes 4; #0:2.14748365e+09 -> #1:2.14748365e+09)");
}

TEST(WorkedCopies, inputs_are_concatenated_128_at_a_time) {
  expect_kernels(copy_of(CopyKind::concatenate, DType::fp32, 6, 5, 3), R"(
CatArray [concatenate_unaligned] copy fp32 no pipe: 1,3 x 128, 32 registers
  elements 90; #0:120 #1:120 #2:120 -> #3:360/3318)");
  expect_kernels(copy_of(CopyKind::concatenate, DType::fp32, 600, 8, 2), R"(
CatArray_vec [concatenate] copy fp32 no pipe: 10,2 x 128, 18 registers
  elements 9600; #0:19200 #1:19200 -> #2:38400)");
  expect_kernels(copy_of(CopyKind::concatenate, DType::bf16, 60000, 8, 2), R"(
CatArray_vec [concatenate] copy bf16 no pipe: 320,2 x 128, 18 registers
  elements 960000 passes 2; #0:960000 #1:960000 -> #2:1920000)");
  expect_kernels(copy_of(CopyKind::concatenate, DType::bf16, 60000, 7, 2), R"(
CatArray [concatenate_unaligned] copy bf16 no pipe: 320,2 x 128, 32 registers
  elements 840000 passes 3; #0:840000 #1:840000 #2:3438750 -> #2:5118750/14697949.2)");
  expect_kernels(copy_of(CopyKind::concatenate_strided, DType::fp32, 128, 8, 3), R"(
CatArray [concatenate_strided] copy fp32 no pipe: 20,3 x 512, 29 registers
  elements 3072 active 6; #0:4096 #1:4096 #2:4096 -> #3:12288)");
  expect_kernels(copy_of(CopyKind::concatenate_strided, DType::bf16, 5120, 10, 2), R"(
CatArray [concatenate_strided] copy bf16 no pipe: 20,2 x 512, 29 registers
  elements 102400 active 40 passes 5; #0:102400 #1:102400 -> #2:204800/409600)");
  const LoweredOp many = lower_by_shape(copy_of(CopyKind::concatenate, DType::fp32, 2, 4, 130),
                                        testing_support::made_up_chip(), Software{});
  ASSERT_EQ(many.launches.size(), 2u);
  EXPECT_EQ(many.launches[0].reads.size(), 128u);
  EXPECT_EQ(many.launches[0].reads[127].operand, 127);
  EXPECT_EQ(testing_support::text_of(many.launches[1]),
            R"(CatArray_vec [concatenate] copy fp32 no pipe: 1,2 x 128, 18 registers
  elements 16; #128:32 #129:32 -> #130:64)");
  EXPECT_EQ(lower_by_shape(copy_of(CopyKind::concatenate, DType::fp32, 2, 4, 128), testing_support::made_up_chip(),
                           Software{})
                .launches.size(),
            1u);
}

TEST(WorkedCopies, transfers_cross_the_link_of_the_host_from_pinned_memory_or_not) {
  expect_kernels(copy_of(CopyKind::host_to_device, DType::fp32, 30, 7), R"(
Memcpy HtoD copy fp32 no pipe: 1 x 128, 32 registers
  upload 840; -> #1:840)");
  expect_kernels(copy_of(CopyKind::device_to_host, DType::fp32, 30, 7), R"(
Memcpy DtoH copy fp32 no pipe: 1 x 128, 32 registers
  download 840; #0:840 ->)");
  expect_kernels(copy_of(CopyKind::pageable_to_device, DType::int64, 30, 7), R"(
Memcpy HtoD copy fp32 no pipe: 1 x 128, 32 registers
  pageable upload 1680; -> #1:1680)");
  expect_kernels(copy_of(CopyKind::device_to_pageable, DType::bf16, 30, 7), R"(
Memcpy DtoH copy fp32 no pipe: 1 x 128, 32 registers
  pageable down 420; #0:420 ->)");
}

TEST(WorkedCopies, bytes_are_cleared_and_nothing_is_written_where_there_are_none) {
  expect_kernels(Memset{.bytes = 48}, R"(
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 48; -> #0:48)");
  expect_kernels(Memset{.bytes = 0}, R"(
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->)");
  EXPECT_THROW(expect_kernels(Memset{.bytes = -1}, ""), std::invalid_argument);
  for (const Copy& none :
       {copy_of(CopyKind::contiguous, DType::fp32, 0, 3), copy_of(CopyKind::permute, DType::fp32, 3, 0),
        copy_of(CopyKind::concatenate, DType::fp32, 3, 2, 0)})
    EXPECT_THROW(expect_kernels(none, ""), std::invalid_argument);
}

// What no rule is known for costs a pass over its bytes, in elements of four.
TEST(WorkedCopies, unknown_ops_move_their_bytes) {
  expect_kernels(UnknownOp{"aten::odd", 4100, 40}, R"(
aten::odd [unary] elementwise fp32 cores: 2 x 128, 32 registers
  elements 1025; #0:4100 -> #1:40
approximated)");
  expect_kernels(UnknownOp{"ncclThing", 0, 8192}, R"(
ncclThing [unary] communication fp32 cores: 2 x 128, 32 registers
  elements 2048; -> #1:8192
approximated)");
  expect_kernels(UnknownOp{"c10d::barrier", 5, 0}, R"(
c10d::barrier [unary] communication fp32 cores: 1 x 128, 32 registers
  elements 1; #0:5 ->
approximated)");
  expect_kernels(UnknownOp{"", 0, 0}, R"(
unknown [unary] elementwise fp32 cores: 1 x 128, 32 registers
  elements 1; ->
approximated)");
  EXPECT_THROW(expect_kernels(UnknownOp{"x", -1, 2}, ""), std::invalid_argument);
  EXPECT_THROW(expect_kernels(UnknownOp{"x", 1, -2}, ""), std::invalid_argument);
}

}  // namespace
}  // namespace ridgeline::worked_copies

// Softmax and normalisation worked out by hand: every kernel whole, on both sides of each length where another begins.
#include <gtest/gtest.h>

#include <array>

#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_rows {
namespace {

using testing_support::expect_kernels;

Softmax forward_of(std::int64_t rows, std::int64_t cols, DType type, bool log = false) {
  return {.log = log, .input = type, .output = type, .rows = rows, .cols = cols};
}
Softmax backward_of(std::int64_t rows, std::int64_t cols, DType type, bool log = false) {
  return {.log = log, .backward = true, .input = type, .output = type, .rows = rows, .cols = cols};
}

// A warp takes two rows of up to 128 padded columns, one beyond; of up to 16 columns it is as narrow as a row.
TEST(WorkedSoftmax, short_rows_are_taken_by_warps) {
  expect_kernels(forward_of(9, 3, DType::fp32), R"(
softmax_warp [softmax_warp] normalization fp32 cores: 1 x 128, 20 registers
  elements 36 padded 36 passes 2; flops 135 #0:108 -> #1:108)");
  expect_kernels(forward_of(1000, 33, DType::bf16), R"(
softmax_warp [softmax_warp] normalization bf16 cores: 125 x 128, 24 registers
  elements 64000 padded 64000 passes 4; flops 165000 #0:66000 -> #1:66000)");
  expect_kernels(forward_of(1000, 128, DType::fp32, true), R"(
log_softmax_warp [log_softmax_warp] normalization fp32 cores: 125 x 128, 31 registers
  elements 128000 padded 128000 passes 8; flops 640000 #0:512000 -> #1:512000)");
  expect_kernels(forward_of(1000, 129, DType::fp16, true), R"(
log_softmax_warp [log_softmax_warp] normalization fp16 cores: 250 x 128, 29 registers
  elements 160000 padded 256000 passes 6.05; flops 645000 #0:258000 -> #1:258000)");
  expect_kernels(Softmax{.input = DType::fp16, .output = DType::fp32, .rows = 7, .cols = 900}, R"(
softmax_warp [softmax_warp] normalization fp16 cores: 2 x 128, 48 registers
  elements 6496 padded 7168 passes 29.45; flops 31500 #0:12600 -> #1:25200)");
  expect_kernels(forward_of(7, 1024, DType::bf16, true), R"(
log_softmax_warp [log_softmax_warp] normalization bf16 cores: 2 x 128, 72 registers
  elements 7168 padded 7168 passes 32; flops 35840 #0:14336 -> #1:14336)");
  expect_kernels(forward_of(7, 1025, DType::bf16), R"(
softmax_warp [softmax_warp_wide] normalization bf16 cores: 2 x 128, 80 registers
  elements 7392 padded 14336 passes 37.65; flops 35875 #0:14350 -> #1:14350)");
  expect_kernels(forward_of(7, 2048, DType::fp32, true), R"(
log_softmax_warp [log_softmax_warp_wide] normalization fp32 cores: 2 x 128, 128 registers
  elements 14336 padded 14336 passes 64; flops 71680 #0:57344 -> #1:57344)");
}

// A block of 1,024 threads a row: in registers up to 9,216 columns, then in shared memory where whole vectors fit it,
// else read three times.
TEST(WorkedSoftmax, long_rows_have_a_block_each) {
  expect_kernels(forward_of(7, 2049, DType::bf16), R"(
SoftMaxForwardReg [softmax_registers] normalization bf16 cores: 7 x 1024, 28 registers shared 128
  elements 14343 passes 3; flops 71715 #0:28686 -> #1:28686)");
  expect_kernels(forward_of(7, 9216, DType::fp32, true), R"(
SoftMaxForwardReg [log_softmax_registers] normalization fp32 cores: 7 x 1024, 38 registers shared 128
  elements 64512 passes 9; flops 322560 #0:258048 -> #1:258048)");
  expect_kernels(forward_of(7, 9217, DType::bf16), R"(
SoftMaxForward [softmax_block] normalization bf16 cores: 7 x 1024, 32 registers shared 128
  elements 64519 passes 3 again 258076 of rows 18434; flops 322595 #0:129038 -> #1:129038)");
  expect_kernels(forward_of(7, 12252, DType::fp32), R"(
SoftMaxForwardSmem [softmax_registers] normalization fp32 cores: 7 x 1024, 30 registers shared 49136
  elements 85764 passes 6; flops 428820 #0:343056 -> #1:343056)");
  expect_kernels(forward_of(7, 12256, DType::fp32), R"(
SoftMaxForward [softmax_block] normalization fp32 cores: 7 x 1024, 32 registers shared 128
  elements 85792 passes 6 again 686336 of rows 49024; flops 428960 #0:343168 -> #1:343168)");
  expect_kernels(forward_of(7, 12260, DType::fp32, true), R"(
SoftMaxForward [softmax_block] normalization fp32 cores: 7 x 1024, 32 registers shared 128
  elements 85820 passes 6 again 686560 of rows 49040; flops 429100 #0:343280 -> #1:343280)");
  expect_kernels(forward_of(7, 24504, DType::bf16, true), R"(
SoftMaxForwardSmem [log_softmax_registers] normalization bf16 cores: 7 x 1024, 32 registers shared 49136
  elements 171528 passes 12; flops 857640 #0:343056 -> #1:343056)");
  expect_kernels(forward_of(7, 24512, DType::bf16), R"(
SoftMaxForward [softmax_block] normalization bf16 cores: 7 x 1024, 32 registers shared 128
  elements 171584 passes 10 again 686336 of rows 49024; flops 857920 #0:343168 -> #1:343168)");
}

// PyTorch before 2025: rows of more than 1,024 columns are read again, by blocks in whole warps.
TEST(WorkedSoftmax, older_libraries_read_long_rows_again) {
  Software older;
  older.softmax_keeps_long_rows = false;
  expect_kernels(forward_of(7, 1024, DType::fp32), R"(
softmax_warp [softmax_warp] normalization fp32 cores: 2 x 128, 48 registers
  elements 7168 padded 7168 passes 32; flops 35840 #0:28672 -> #1:28672)",
                 older);
  expect_kernels(forward_of(7, 1028, DType::fp32), R"(
SoftMaxForward [softmax_block] normalization fp32 cores: 7 x 128, 32 registers shared 128
  elements 7196 passes 3 again 57568 of rows 4112 through L1 crowded; flops 35980 #0:28784 -> #1:28784)",
                 older);
  expect_kernels(forward_of(7, 1029, DType::fp32, true), R"(
SoftMaxForward [softmax_block] normalization fp32 cores: 7 x 1024, 32 registers shared 128
  elements 7203 passes 2 again 57624 of rows 4116 through L1 crowded; flops 36015 #0:28812 -> #1:28812)",
                 older);
  older.softmax_fills_blocks = false;
  expect_kernels(forward_of(7, 1029, DType::fp32), R"(
SoftMaxForward [softmax_block] normalization fp32 cores: 7 x 128, 32 registers shared 128
  elements 7203 passes 5.25 again 57624 of rows 4116 through L1 crowded; flops 36015 #0:28812 -> #1:28812)",
                 older);
  expect_kernels(forward_of(7, 70000, DType::bf16), R"(
SoftMaxForward [softmax_block] normalization bf16 cores: 7 x 512, 32 registers shared 128
  elements 490000 passes 18 again 1960000 of rows 140000 through L1 crowded; flops 2450000 #0:980000 -> #1:980000)",
                 older);
}

// Registers of a warp by the doublings of its columns: softmax in fp32 and 16 bits, its logarithm likewise.
TEST(WorkedSoftmax, registers_of_warps_follow_the_padded_columns) {
  struct Row {
    int doublings;
    std::array<int, 4> forward;   ///< fp32, 16 bits; of the logarithm
    std::array<int, 2> backward;  ///< fp32, 16 bits
  };
  constexpr std::array kRows{Row{3, {20, 20, 20, 20}, {24, 24}},  Row{5, {20, 20, 20, 20}, {24, 24}},
                             Row{6, {22, 24, 22, 24}, {31, 28}},  Row{7, {31, 30, 31, 30}, {32, 32}},
                             Row{8, {30, 29, 30, 29}, {32, 32}},  Row{9, {32, 32, 32, 32}, {56, 55}},
                             Row{10, {48, 48, 71, 72}, {95, 96}}, Row{11, {80, 80, 128, 128}, {}}};
  const Gpu chip = testing_support::made_up_chip();
  for (const Row& row : kRows)
    for (const bool half : {false, true})
      for (const bool log : {false, true})
        for (const int less : {0, 1}) {  // all lengths behind the last power of two
          const std::int64_t cols =
              less == 0 ? std::int64_t{1} << row.doublings : (std::int64_t{1} << row.doublings) - 2;
          const DType type = half ? DType::bf16 : DType::fp32;
          EXPECT_EQ(lower_by_shape(forward_of(8, cols, type, log), chip, {}).launches.back().registers_per_thread,
                    row.forward[(log ? 2u : 0u) + (half ? 1u : 0u)])
              << cols << log << half;
          if (row.doublings < 11) {
            EXPECT_EQ(lower_by_shape(backward_of(8, cols, type, log), chip, {}).launches.back().registers_per_thread,
                      row.backward[half ? 1 : 0])
                << cols << log << half;
          }
        }
}

// Of rows in registers, by the elements of a thread: softmax, softmax of 16 bits, the logarithm.
TEST(WorkedSoftmax, registers_of_blocks_follow_the_elements_of_a_thread) {
  struct Row {
    std::int64_t each;
    int full, half, log;
  };
  const Gpu chip = testing_support::made_up_chip();
  for (const Row& row : {Row{3, 28, 28, 26}, Row{4, 30, 30, 30}, Row{5, 30, 30, 30}, Row{6, 29, 29, 32},
                         Row{7, 34, 34, 32}, Row{8, 37, 37, 36}, Row{9, 38, 40, 38}})
    for (const std::int64_t cols : {row.each * 1024 - 1023, row.each * 1024}) {
      const auto registers = [&](DType type, bool log) {
        return lower_by_shape(forward_of(8, cols, type, log), chip, {}).launches.back().registers_per_thread;
      };
      EXPECT_EQ(registers(DType::fp32, false), row.full) << cols;
      EXPECT_EQ(registers(DType::fp16, false), row.half) << cols;
      EXPECT_EQ(registers(DType::fp32, true), row.log) << cols;
      EXPECT_EQ(registers(DType::bf16, true), row.log) << cols;
    }
}

TEST(WorkedSoftmax, gradients_multiply_first_and_those_of_logarithms_do_not) {
  expect_kernels(backward_of(100, 25, DType::bf16), R"(
mul [mul] normalization bf16 cores: 3 x 128, 40 registers
  elements 2500 active 2.44140625 tail 3; flops 2500 #0:5000 #1:5000 -> t:5000
softmax_warp_bwd [softmax_backward_warp] normalization bf16 cores: 13 x 128, 24 registers
  elements 3200 padded 3200 passes 2; flops 10000 t:5000 #1:5000 -> #2:5000)");
  expect_kernels(backward_of(100, 25, DType::fp32, true), R"(
log_softmax_warp_bwd [log_softmax_backward_warp] normalization fp32 cores: 13 x 128, 24 registers
  elements 3200 padded 3200 passes 2; flops 10000 #0:10000 #1:10000 -> #2:10000)");
  expect_kernels(backward_of(8, 1024, DType::fp32, true), R"(
log_softmax_warp_bwd [log_softmax_backward_warp] normalization fp32 cores: 2 x 128, 95 registers
  elements 8192 padded 8192 passes 32; flops 32768 #0:32768 #1:32768 -> #2:32768)");
  expect_kernels(backward_of(8, 1025, DType::fp32), R"(
mul [mul] normalization fp32 cores: 9 x 128, 32 registers
  elements 8200 active 8.0078125; flops 8200 #0:32800 #1:32800 -> t:32800
SoftMaxBackward [softmax_backward_block] normalization fp32 cores: 8 x 128, 40 registers shared 512
  elements 8200 passes 5.25 again 32800 of rows 4100; flops 32800 t:32800 #1:32800 -> #2:32800)");
  expect_kernels(backward_of(8, 1028, DType::fp16, true), R"(
SoftMaxBackward [softmax_backward_block] normalization fp16 cores: 8 x 64, 32 registers shared 256
  elements 8224 passes 6.5 again 16448 of rows 2056; flops 32896 #0:16448 #1:16448 -> #2:16448)");
  expect_kernels(backward_of(8, 4096, DType::fp16, true), R"(
SoftMaxBackwardSmem [softmax_backward_shared] normalization fp16 cores: 8 x 256, 32 registers shared 8224
  elements 32768 passes 2; flops 131072 #0:65536 #1:65536 -> #2:65536)");
  expect_kernels(backward_of(8, 4096, DType::bf16, true), R"(
SoftMaxBackwardSmem [softmax_backward_shared] normalization bf16 cores: 8 x 256, 29 registers shared 8224
  elements 32768 passes 2; flops 131072 #0:65536 #1:65536 -> #2:65536)");
  expect_kernels(backward_of(8, 4096, DType::fp32, true), R"(
SoftMaxBackwardSmem [softmax_backward_shared] normalization fp32 cores: 8 x 512, 27 registers shared 16448
  elements 32768 passes 2; flops 131072 #0:131072 #1:131072 -> #2:131072)");
  expect_kernels(backward_of(8, 4096, DType::fp32), R"(
mul [mul] normalization fp32 cores: 32 x 128, 32 registers
  elements 32768 active 32; flops 32768 #0:131072 #1:131072 -> t:131072
SoftMaxBackwardSmem [softmax_backward_shared] normalization fp32 cores: 8 x 512, 23 registers shared 16448
  elements 32768 passes 2; flops 131072 t:131072 #1:131072 -> #2:131072)");
  expect_kernels(backward_of(8, 12268, DType::fp32, true), R"(
SoftMaxBackwardSmem [softmax_backward_shared] normalization fp32 cores: 8 x 512, 27 registers shared 49136
  elements 98144 passes 6; flops 392576 #0:392576 #1:392576 -> #2:392576)");
  expect_kernels(backward_of(8, 12272, DType::fp32, true), R"(
SoftMaxBackward [softmax_backward_block] normalization fp32 cores: 8 x 512, 56 registers shared 2048
  elements 98176 passes 9 again 392704 of rows 49088; flops 392704 #0:392704 #1:392704 -> #2:392704)");
  expect_kernels(backward_of(8, 24600, DType::bf16, true), R"(
SoftMaxBackward [softmax_backward_block] normalization bf16 cores: 8 x 512, 32 registers shared 2048
  elements 196800 passes 7 again 393600 of rows 49200; flops 787200 #0:393600 #1:393600 -> #2:393600)");
  // 3 x 357,913,943 elements of two bytes are halved; the gradient itself is not.
  expect_kernels(backward_of(3, 357913943, DType::bf16), R"(
mul [mul] normalization bf16 cores: 524289 x 128, 40 registers
  elements 536870915 active 524288.003; flops 536870915 #0:1.07374183e+09 #1:1.07374183e+09 -> t:1.07374183e+09
mul [mul] normalization bf16 cores: 524289 x 128, 40 registers
  elements 536870914 active 524288.002; flops 536870914 #0:1.07374183e+09 #1:1.07374183e+09 -> t:1.07374183e+09
SoftMaxBackward [softmax_backward_block] normalization bf16 cores: 3 x 512, 40 registers shared 2048
  elements 1.07374183e+09 passes 87384 again 2.14748366e+09 of rows 715827886; flops 4.29496732e+09 t:2.14748366e+09 #1:2.14748366e+09 -> #2:2.14748366e+09)");
  // fp32 in, 16 bits out, as under autocast.
  expect_kernels(
      Softmax{.log = true, .backward = true, .input = DType::fp32, .output = DType::fp16, .rows = 5, .cols = 40},
      R"(
log_softmax_warp_bwd [log_softmax_backward_warp] normalization fp32 cores: 1 x 128, 31 registers
  elements 320 padded 320 passes 4; flops 800 #0:800 #1:800 -> #2:400)");
  EXPECT_THROW(expect_kernels(forward_of(0, 3, DType::fp32), ""), std::invalid_argument);
  EXPECT_THROW(expect_kernels(forward_of(3, 0, DType::fp32), ""), std::invalid_argument);
}

Norm norm_of(std::int64_t rows, std::int64_t cols, DType type, bool bias = true, bool rms = false) {
  return {.rms = rms, .bias = bias, .type = type, .rows = rows, .cols = cols};
}
Norm gradient_of(std::int64_t rows, std::int64_t cols, DType type, bool bias = true, bool rms = false) {
  return {.rms = rms, .backward = true, .bias = bias, .type = type, .rows = rows, .cols = cols};
}

TEST(WorkedNorms, rows_of_fours_are_taken_by_vectors_and_others_in_two_kernels) {
  expect_kernels(norm_of(9, 516, DType::fp32), R"(
vectorized_layer_norm [layer_norm_vectorized] normalization fp32 cores: 9 x 128, 39 registers shared 24
  elements 5760 passes 2 again 18576 of rows 2064 through L1; flops 32508 #0:18576 #1:2064 #2:2064 -> #3:18576 #4:36 #5:36)");
  expect_kernels(norm_of(9, 100, DType::bf16, false), R"(
vectorized_layer_norm [layer_norm_vectorized] normalization bf16 cores: 9 x 128, 32 registers shared 24
  elements 1152 again 1800 of rows 200 through L1; flops 6300 #0:1800 #1:200 -> #2:1800 #3:36 #4:36)");
  expect_kernels(norm_of(9, 512, DType::fp16, true, true), R"(
vectorized_rms_norm [layer_norm_vectorized] normalization fp16 cores: 9 x 128, 32 registers shared 24
  elements 4608 again 9216 of rows 1024 through L1; flops 32256 #0:9216 #1:1024 -> #2:9216 #3:36)");
  expect_kernels(norm_of(9, 513, DType::fp32), R"(
RowwiseMoments [layer_norm_moments] normalization fp32 cores: 9 x 512, 28 registers shared 768
  elements 4617 passes 2; flops 18468 #0:18468 -> #4:36 #5:36
LayerNormForward [layer_norm_transform] normalization fp32 cores: 9 x 256, 21 registers
  elements 4896 passes 3; flops 13851 #0:18468 #1:2052 #2:2052 -> #3:18468)");
  expect_kernels(norm_of(9, 257, DType::bf16, false), R"(
RowwiseMoments [layer_norm_moments] normalization bf16 cores: 9 x 512, 28 registers shared 768
  elements 2313; flops 9252 #0:4626 -> #3:36 #4:36
LayerNormForward [layer_norm_transform] normalization bf16 cores: 9 x 256, 23 registers
  elements 2592 passes 2; flops 6939 #0:4626 #1:514 -> #2:4626)");
  expect_kernels(norm_of(9, 255, DType::fp32, true, true), R"(
RowwiseMoments [layer_norm_moments] normalization fp32 cores: 9 x 512, 28 registers shared 768
  elements 2295; flops 9180 #0:9180 -> #3:36
LayerNormForward [layer_norm_transform] normalization fp32 cores: 9 x 256, 21 registers
  elements 2304; flops 6885 #0:9180 #1:1020 -> #2:9180)");
  EXPECT_THROW(expect_kernels(norm_of(0, 3, DType::fp32), ""), std::invalid_argument);
  EXPECT_THROW(expect_kernels(norm_of(3, 0, DType::fp32), ""), std::invalid_argument);
}

TEST(WorkedNorms, gradients_are_those_of_rows_then_of_weights) {
  expect_kernels(gradient_of(40, 516, DType::fp32), R"(
layer_norm_grad_input_vec [layer_norm_backward_vectorized] normalization fp32 cores: 40 x 128, 32 registers shared 16
  elements 25600 passes 2 again 165120 of rows 4128 through L1; flops 247680 #0:82560 #1:82560 #2:2064 #3:160 #4:160 -> #5:82560
GammaBetaBackward [gamma_beta] normalization fp32 cores: 17 x 32, 40 registers shared 264
  elements 21760 passes 5; flops 82560 #0:82560 #1:82560 #3:160 #4:160 -> #6:2064 #7:2064)");
  expect_kernels(gradient_of(64, 515, DType::bf16, false), R"(
layer_norm_grad_input [layer_norm_backward] normalization bf16 cores: 64 x 128, 32 registers shared 16
  elements 34816 passes 5 again 131840 of rows 2060 through L1; flops 395520 #0:65920 #1:65920 #2:1030 #3:256 #4:256 -> #5:65920
GammaBetaBackward [gamma_beta] normalization bf16 cores: 17 x 256, 46 registers shared 2112
  elements 34816; flops 131840 #0:65920 #1:65920 #3:256 #4:256 -> #6:1030)");
  expect_kernels(gradient_of(64, 96, DType::fp16, true, true), R"(
layer_norm_grad_input_vec [layer_norm_backward_vectorized] normalization fp16 cores: 64 x 128, 32 registers shared 16
  elements 8192 again 24576 of rows 384 through L1; flops 73728 #0:12288 #1:12288 #2:192 #3:256 -> #4:12288
GammaBetaBackward [gamma_beta_aligned] normalization fp16 cores: 3 x 256, 32 registers shared 2112
  elements 6144; flops 24576 #0:12288 #1:12288 #3:256 -> #5:192)");
}

// Rows of threads of a block by the rows: 1, 8 from 64, 16 from 128, 32 from 256; registers by type and whether rows
// and columns fill them.
TEST(WorkedNorms, blocks_of_weight_gradients_grow_with_the_rows) {
  struct Row {
    std::int64_t rows, cols;
    int threads, bf16, fp16, full;
    std::string_view kind;
    double passes;
  };
  const Gpu chip = testing_support::made_up_chip();
  for (const Row& row :
       {Row{63, 64, 32, 46, 43, 40, "gamma_beta", 8}, Row{56, 64, 32, 32, 32, 31, "gamma_beta_aligned", 7},
        Row{64, 64, 256, 32, 32, 31, "gamma_beta_aligned", 1}, Row{64, 65, 256, 46, 43, 40, "gamma_beta", 1},
        Row{127, 64, 256, 46, 43, 40, "gamma_beta", 2}, Row{128, 64, 512, 32, 32, 31, "gamma_beta_aligned", 1},
        Row{255, 64, 512, 46, 43, 40, "gamma_beta", 2}, Row{256, 64, 1024, 32, 32, 31, "gamma_beta_aligned", 1},
        Row{257, 64, 1024, 46, 49, 46, "gamma_beta", 2}})
    for (const DType type : {DType::bf16, DType::fp16, DType::fp32}) {
      const KernelLaunch made = lower_by_shape(gradient_of(row.rows, row.cols, type), chip, {}).launches.at(1);
      EXPECT_EQ(made.grid, (std::array<std::int64_t, 3>{(row.cols + 31) / 32, 1, 1}));
      EXPECT_EQ(made.threads_per_block, row.threads) << row.rows;
      EXPECT_EQ(made.shared_bytes_per_block, 264 * row.threads / 32);
      EXPECT_EQ(made.registers_per_thread, type == DType::bf16   ? row.bf16
                                           : type == DType::fp16 ? row.fp16
                                                                 : row.full)
          << row.rows;
      const auto& work = std::get<MemoryBoundWork>(made.work);
      EXPECT_EQ(name_of(static_cast<MemoryBoundKernel>(work.kernel_class)), row.kind) << row.rows;
      EXPECT_EQ(work.iterations, row.passes) << row.rows;
    }
}

// More than 65,536 rows of columns that are fewer blocks of 32 than half of the SMs: a warp takes 32 rows, and sums add
// up the parts.
TEST(WorkedNorms, weight_gradients_of_many_rows_come_in_parts) {
  expect_kernels(gradient_of(65568, 96, DType::bf16), R"(
layer_norm_grad_input_vec [layer_norm_backward_vectorized] normalization bf16 cores: 65568 x 128, 32 registers shared 16
  elements 8392704 again 25178112 of rows 384 through L1; flops 75534336 #0:12589056 #1:12589056 #2:192 #3:262272 #4:262272 -> #5:12589056
GammaBetaBackward [gamma_beta_aligned] normalization bf16 cores: 3,2049 x 32, 40 registers
  elements 6294528 passes 4; flops 25178112 #0:12589056 #1:12589056 #3:262272 #4:262272 -> t:786816
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 8; -> t:8
reduce_kernel [reduce_columns] normalization bf16 cores: 2,17 x 128, 54 registers shared 2064
  elements 196704 passes 4 tail 3; flops 196704 t:393408 -> #6:192
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 8; -> t:8
reduce_kernel [reduce_columns] normalization bf16 cores: 2,17 x 128, 54 registers shared 2064
  elements 196704 passes 4 tail 3; flops 196704 t:393408 -> #7:192
temporaries 393408 417792 8 393408 417792 8)");
  expect_kernels(gradient_of(65537, 96, DType::fp32, true, true), R"(
layer_norm_grad_input_vec [layer_norm_backward_vectorized] normalization fp32 cores: 65537 x 128, 32 registers shared 16
  elements 8388736 again 50332416 of rows 768 through L1; flops 75498624 #0:25166208 #1:25166208 #2:384 #3:262148 -> #4:25166208
GammaBetaBackward [gamma_beta] normalization fp32 cores: 3,2049 x 32, 40 registers
  elements 6291552 passes 4; flops 25166208 #0:25166208 #1:25166208 #3:262148 -> t:786816
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 8; -> t:8
reduce_kernel [reduce_columns] normalization fp32 cores: 2,17 x 128, 54 registers shared 2064
  elements 196704 passes 4 tail 3; flops 196704 t:786816 -> #5:384
temporaries 786816 417792 8)");
  expect_kernels(gradient_of(65536, 96, DType::bf16, false), R"(
layer_norm_grad_input_vec [layer_norm_backward_vectorized] normalization bf16 cores: 65536 x 128, 32 registers shared 16
  elements 8388608 again 25165824 of rows 384 through L1; flops 75497472 #0:12582912 #1:12582912 #2:192 #3:262144 #4:262144 -> #5:12582912
GammaBetaBackward [gamma_beta_aligned] normalization bf16 cores: 3 x 1024, 32 registers shared 8448
  elements 6291456 passes 256; flops 25165824 #0:12582912 #1:12582912 #3:262144 #4:262144 -> #6:192)");
  expect_kernels(gradient_of(65568, 160, DType::bf16, false), R"(
layer_norm_grad_input_vec [layer_norm_backward_vectorized] normalization bf16 cores: 65568 x 128, 32 registers shared 16
  elements 16785408 again 41963520 of rows 640 through L1; flops 125890560 #0:20981760 #1:20981760 #2:320 #3:262272 #4:262272 -> #5:20981760
GammaBetaBackward [gamma_beta] normalization bf16 cores: 5 x 1024, 46 registers shared 8448
  elements 10490880 passes 257; flops 41963520 #0:20981760 #1:20981760 #3:262272 #4:262272 -> #6:320)");
  Software whole;
  whole.norms_sum_in_parts = false;
  expect_kernels(gradient_of(65568, 96, DType::bf16, false), R"(
layer_norm_grad_input_vec [layer_norm_backward_vectorized] normalization bf16 cores: 65568 x 128, 32 registers shared 16
  elements 8392704 again 25178112 of rows 384 through L1; flops 75534336 #0:12589056 #1:12589056 #2:192 #3:262272 #4:262272 -> #5:12589056
GammaBetaBackward [gamma_beta] normalization bf16 cores: 3 x 1024, 46 registers shared 8448
  elements 6294528 passes 257; flops 25178112 #0:12589056 #1:12589056 #3:262272 #4:262272 -> #6:192)",
                 whole);
}

// Before December 2021: four kernels, none by vectors, and no RMS norm among them.
TEST(WorkedNorms, older_gradients_have_four_kernels) {
  Software older;
  older.norms_by_vectors = false;
  expect_kernels(norm_of(9, 516, DType::fp32), R"(
RowwiseMoments [layer_norm_moments] normalization fp32 cores: 9 x 512, 28 registers shared 768
  elements 4644 passes 2; flops 18576 #0:18576 -> #4:36 #5:36
LayerNormForward [layer_norm_transform] normalization fp32 cores: 9 x 256, 21 registers
  elements 4896 passes 3; flops 13932 #0:18576 #1:2064 #2:2064 -> #3:18576)",
                 older);
  expect_kernels(gradient_of(511, 513, DType::fp32), R"(
ComputeInternalGradients [layer_norm_backward] normalization fp32 cores: 511 x 512, 32 registers shared 256
  elements 138992 passes 2; flops 1111936 #0:1048572 #1:1048572 #2:2052 -> t:4088
ComputeGradientFusedParams [mul] normalization fp32 cores: 1 x 128, 32 registers
  elements 511 active 0.499023438 tail 3; flops 511 t:2044 t:2044 t:2044 -> t:2044
LayerNormBackward [layer_norm_transform] normalization fp32 cores: 511 x 256, 24 registers
  elements 277984 passes 3; flops 1389920 #0:1048572 #1:1048572 #2:2052 #4:2044 t:4088 -> #5:1048572
GammaBetaBackward [gamma_beta] normalization fp32 cores: 3 x 256, 32 registers
  elements 277984 passes 64; flops 1111936 #0:1048572 #1:1048572 #3:2044 #4:2044 -> #6:2052 #7:2052
temporaries 2044 2044 2044 2044)",
                 older);
  expect_kernels(gradient_of(512, 96, DType::bf16, false), R"(
ComputeInternalGradients [layer_norm_backward] normalization bf16 cores: 512 x 512, 32 registers shared 256
  elements 24576; flops 196608 #0:98304 #1:98304 #2:192 -> t:4096
ComputeGradientFusedParams [mul] normalization fp32 cores: 1 x 128, 32 registers
  elements 512 active 0.5 tail 3; flops 512 t:2048 t:2048 t:2048 -> t:2048
LayerNormBackward [layer_norm_transform] normalization bf16 cores: 512 x 256, 24 registers
  elements 49152; flops 245760 #0:98304 #1:98304 #2:192 #4:2048 t:4096 -> #5:98304
GammaBetaBackward [gamma_beta] normalization bf16 cores: 3 x 512, 32 registers shared 8448
  elements 49152 passes 8; flops 196608 #0:98304 #1:98304 #3:2048 #4:2048 -> #6:192
temporaries 2048 2048 2048 2048)",
                 older);
  expect_kernels(gradient_of(64, 96, DType::fp16, true, true), R"(
layer_norm_grad_input_vec [layer_norm_backward_vectorized] normalization fp16 cores: 64 x 128, 32 registers shared 16
  elements 8192 again 24576 of rows 384 through L1; flops 73728 #0:12288 #1:12288 #2:192 #3:256 -> #4:12288
GammaBetaBackward [gamma_beta_aligned] normalization fp16 cores: 3 x 256, 32 registers shared 2112
  elements 6144; flops 24576 #0:12288 #1:12288 #3:256 -> #5:192)",
                 older);
  expect_kernels(norm_of(9, 512, DType::fp16, true, true), R"(
vectorized_rms_norm [layer_norm_vectorized] normalization fp16 cores: 9 x 128, 32 registers shared 24
  elements 4608 again 9216 of rows 1024 through L1; flops 32256 #0:9216 #1:1024 -> #2:9216 #3:36)",
                 older);
}

}  // namespace
}  // namespace ridgeline::worked_rows

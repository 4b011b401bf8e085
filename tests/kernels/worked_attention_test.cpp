// Fused attention worked out by hand: every kernel of both passes whole, on a chip of ten SMs.
//
// 3 rows of 4 heads, 2 of keys and values, 300 queries, 200 keys, heads of 40 numbers in 16 bits: operands of
// 3 x 4 x 300 x 40 x 2 = 288,000 bytes (queries) and 96,000 (keys), 3,600 rows of scores.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_attention {
namespace {

using testing_support::expect_kernels;
using enum AttentionBackend;

Attention attention_of(AttentionBackend backend, DType type = DType::bf16) {
  return {.backend = backend,
          .type = type,
          .batch = 3,
          .heads = 4,
          .kv_heads = backend == efficient ? 4 : 2,
          .seq_q = 300,
          .seq_k = 200,
          .head_dim = 40};
}
Attention backward(Attention op) {
  op.backward = true;
  return op;
}
Attention with(Attention op, std::int64_t Attention::*field, std::int64_t value) {
  op.*field = value;
  return op;
}
Attention with(Attention op, bool Attention::*field) {
  op.*field = true;
  return op;
}

// Heads of 64 in tiles of 128 x 128: three tiles of 300 queries. 4 x 12 x 300 x 200 x 40 FLOPs. Five tiles of 64
// queries, 60 in all, are more than 0.8 of 20 places: keys are not split.
TEST(WorkedAttention, flash_forward_is_one_kernel_where_blocks_fill_the_chip) {
  expect_kernels(attention_of(flash), R"(
flash_fprop_64_128x128 contraction bf16 mma: 3,4,3 x 128, 255 registers shared 49152
  flash forward bf16 batch 3 heads 4 queries 300 keys 200 d 64 tile 128x128 kv 2 an SM 2 padded; flops 115200000 #0:288000 #1:96000 #2:96000 -> #3:288000 #4:14400)");
  expect_kernels(with(attention_of(flash), &Attention::causal), R"(
flash_fprop_64_128x128 contraction bf16 mma: 3,4,3 x 128, 255 registers shared 49152
  flash forward bf16 batch 3 heads 4 queries 300 keys 200 d 64 tile 128x128 kv 2 an SM 2 causal padded; flops 57600000 #0:288000 #1:96000 #2:96000 -> #3:288000 #4:14400)");
  expect_kernels(with(with(attention_of(flash), &Attention::dropout), &Attention::head_dim, 64), R"(
flash_fprop_64_128x64 contraction bf16 mma: 3,4,3 x 128, 255 registers shared 32768
  flash forward bf16 batch 3 heads 4 queries 300 keys 200 d 64 tile 128x64 kv 2 an SM 2 dropout; flops 184320000 #0:460800 #1:153600 #2:153600 -> #3:460800 #4:14400)");
}

// 100 queries of one row and 2 heads are 4 blocks of 64 on 20 places: of 1,000 keys, 4 tiles of 256,
// four splits fill 16 of them, three none more than two do.
TEST(WorkedAttention, flash_forward_splits_keys_where_blocks_are_few) {
  Attention few = attention_of(flash);
  few.batch = 1, few.heads = 2, few.seq_q = 100, few.seq_k = 1000;
  expect_kernels(few, R"(
flash_fprop_64_64x256 contraction bf16 mma: 8,2 x 128, 255 registers shared 73728
  flash forward bf16 batch 1 heads 2 queries 100 keys 1000 d 64 tile 64x256 splits 4 kv 2 an SM 2 padded; flops 32000000 #0:16000 #1:160000 #2:160000 -> t:204800
flash_fwd_splitkv_combine [split_combine] contraction bf16 cores: 25 x 128, 54 registers
  elements 51200 passes 4; t:204800 -> #3:16000 #4:800
temporaries 3200 204800)");
  expect_kernels(with(few, &Attention::head_dim, 100), R"(
flash_fprop_128_64x128 contraction bf16 mma: 8,2 x 128, 255 registers shared 81920
  flash forward bf16 batch 1 heads 2 queries 100 keys 1000 d 128 tile 64x128 splits 4 kv 2 an SM 2 padded; flops 80000000 #0:40000 #1:400000 #2:400000 -> t:409600
flash_fwd_splitkv_combine [split_combine] contraction bf16 cores: 50 x 128, 54 registers
  elements 102400 passes 4; t:409600 -> #3:40000 #4:800
temporaries 3200 409600)");
  expect_kernels(with(few, &Attention::head_dim, 160), R"(
flash_fprop_192_64x64 contraction bf16 mma: 8,2 x 128, 255 registers shared 73728
  flash forward bf16 batch 1 heads 2 queries 100 keys 1000 d 192 tile 64x64 splits 4 kv 2 an SM 2 padded; flops 128000000 #0:64000 #1:640000 #2:640000 -> t:614400
flash_fwd_splitkv_combine [split_combine] contraction bf16 cores: 25 x 128, 54 registers
  elements 153600 passes 4; t:614400 -> #3:64000 #4:800
temporaries 3200 614400)");
  expect_kernels(with(few, &Attention::dropout), R"(
flash_fprop_64_128x64 contraction bf16 mma: 1,2 x 128, 255 registers shared 32768
  flash forward bf16 batch 1 heads 2 queries 100 keys 1000 d 64 tile 128x64 kv 2 an SM 2 dropout padded; flops 32000000 #0:16000 #1:160000 #2:160000 -> #3:16000 #4:800)");
}

TEST(WorkedAttention, flash_backward_is_delta_the_gradients_and_a_conversion) {
  Attention op = backward(attention_of(flash));
  expect_kernels(op, R"(
flash_bwd_dot_do_o [flash_delta] contraction bf16 cores: 3,4,3 x 256, 46 registers
  elements 294912; #0:288000 #4:288000 -> t:1179648
flash_bprop_64_128x128 contraction bf16 mma: 2,4,3 x 256, 255 registers shared 147456
  flash backward bf16 batch 3 heads 4 queries 300 keys 200 d 64 tile 128x128 kv 2 padded; flops 288000000 #1:288000 #2:96000 #3:96000 #0:288000 -> t:1179648 t:192000 t:192000
flash_bwd_convert_dq [flash_convert] contraction bf16 cores: 3,4,3 x 256, 46 registers shared 16384
  elements 294912; t:1179648 -> #6:288000
reduce_kernel [reduce_columns] contraction bf16 cores: 94 x 128, 54 registers shared 16
  elements 96000; flops 96000 t:192000 -> #7:96000
reduce_kernel [reduce_columns] contraction bf16 cores: 94 x 128, 54 registers shared 16
  elements 96000; flops 96000 t:192000 -> #8:96000
temporaries 18432 1179648 192000 192000)");
  op.kv_heads = 4;
  op.head_major = true;
  op.head_dim = 64;
  expect_kernels(op, R"(
elementwise_copy copy fp32 no pipe: 450 x 128, 32 registers
  flash layout copy bf16 batch 3 heads 4 queries 300 keys 200 d 64; #0:460800 -> t:460800
elementwise_copy copy fp32 no pipe: 450 x 128, 32 registers
  flash layout copy bf16 batch 3 heads 4 queries 300 keys 200 d 64; #4:460800 -> t:460800
flash_bwd_dot_do_o [flash_delta] contraction bf16 cores: 3,4,3 x 256, 46 registers
  elements 294912; #0:460800 #4:460800 -> t:1179648
flash_bprop_64_128x128 contraction bf16 mma: 2,4,3 x 256, 255 registers shared 147456
  flash backward bf16 batch 3 heads 4 queries 300 keys 200 d 64 tile 128x128 kv 4; flops 460800000 #1:460800 #2:307200 #3:307200 #0:460800 -> t:1179648 #7:307200 #8:307200
flash_bwd_convert_dq [flash_convert] contraction bf16 cores: 3,4,3 x 256, 46 registers shared 16384
  elements 294912; t:1179648 -> #6:460800
temporaries 460800 460800 18432 1179648)");
  Attention small = op;
  small.batch = small.heads = small.kv_heads = 1, small.seq_q = 8, small.seq_k = 9;
  expect_kernels(small, R"(
elementwise_copy copy fp32 no pipe: 1 x 128, 32 registers
  flash layout copy bf16 batch 1 heads 1 queries 8 keys 9 d 64; #0:1024 -> t:1024
elementwise_copy copy fp32 no pipe: 1 x 128, 32 registers
  flash layout copy bf16 batch 1 heads 1 queries 8 keys 9 d 64; #4:1024 -> t:1024
flash_bwd_dot_do_o [flash_delta] contraction bf16 cores: 1 x 256, 46 registers
  elements 8192; #0:1024 #4:1024 -> t:32768
flash_bprop_64_128x128 contraction bf16 mma: 1 x 256, 255 registers shared 147456
  flash backward bf16 batch 1 heads 1 queries 8 keys 9 d 64 tile 128x128 kv 1; flops 46080 #1:1024 #2:1152 #3:1152 #0:1024 -> t:32768 #7:1152 #8:1152
flash_bwd_convert_dq [flash_convert] contraction bf16 cores: 1 x 256, 46 registers shared 16384
  elements 8192; t:32768 -> #6:1024
temporaries 1024 1024 512 32768)");
}

TEST(WorkedAttention, cudnn_clears_its_counters_and_fetches_its_tiles) {
  expect_kernels(attention_of(cudnn), R"(
Memset contraction fp32 no pipe: 1 x 128, 32 registers
  memset 4; ->
cudnn_sdpa_flash_fprop_128x128x64 contraction bf16 wgmma: 10 x 384, 168 registers shared 134144
  cudnn forward bf16 batch 3 heads 4 queries 300 keys 200 d 64 tile 128x128 kv 2 persistent; flops 115200000 #0:288000 #1:96000 #2:96000 -> #3:288000 #4:14400
temporaries 256)");
  Attention masked = attention_of(cudnn);
  masked.dropout = masked.bias = masked.causal = true;
  expect_kernels(masked, R"(
philox_unpack contraction fp32 no pipe: 1 x 128, 32 registers
  small helper 64; ->
Memset contraction fp32 no pipe: 1 x 128, 32 registers
  memset 4; ->
cudnn_sdpa_flash_fprop_128x128x64 contraction bf16 wgmma: 10 x 384, 168 registers shared 134144
  cudnn forward bf16 batch 3 heads 4 queries 300 keys 200 d 64 tile 128x128 kv 2 causal dropout bias persistent; flops 57600000 #0:288000 #1:96000 #2:96000 #3:360000/1440000 -> #4:288000 #5:14400
temporaries 256)");
  expect_kernels(backward(masked), R"(
Memset contraction fp32 no pipe: 1 x 128, 32 registers
  memset 4; ->
cudnn_compute_dot_do_o [cudnn_delta] contraction bf16 cores: 19,4,3 x 128, 26 registers
  elements 233472 passes 0.25; #0:288000 #4:288000 -> t:576000
cudnn_sdpa_flash_bprop_64x128x64 contraction bf16 wgmma: 10 x 384, 168 registers shared 152576
  cudnn backward bf16 batch 3 heads 4 queries 300 keys 200 d 64 tile 64x128 kv 2 causal dropout bias persistent; flops 144000000 #1:288000 #2:96000 #3:96000 #0:288000 #6:360000/1440000 -> t:576000 t:192000 t:192000
cudnn_convert_dq [cudnn_convert] contraction bf16 cores: 6,4,3 x 128, 30 registers
  elements 146880 passes 0.46875; t:576000 -> #7:288000
reduce_kernel [reduce_columns] contraction bf16 cores: 94 x 128, 54 registers shared 16
  elements 96000; flops 96000 t:192000 -> #8:96000
reduce_kernel [reduce_columns] contraction bf16 cores: 94 x 128, 54 registers shared 16
  elements 96000; flops 96000 t:192000 -> #9:96000
temporaries 974656)");
  masked.batch = masked.heads = masked.kv_heads = 1;
  masked.head_dim = 136;
  expect_kernels(masked, R"(
philox_unpack contraction fp32 no pipe: 1 x 128, 32 registers
  small helper 64; ->
Memset contraction fp32 no pipe: 1 x 128, 32 registers
  memset 4; ->
cudnn_sdpa_flash_fprop_128x128x192 contraction bf16 wgmma: 3 x 384, 168 registers shared 224256
  cudnn forward bf16 batch 1 heads 1 queries 300 keys 200 d 192 tile 128x128 kv 1 causal dropout bias persistent; flops 16320000 #0:81600 #1:54400 #2:54400 #3:120000 -> #4:81600 #5:1200
temporaries 256)");
  expect_kernels(backward(masked), R"(
Memset contraction fp32 no pipe: 1 x 128, 32 registers
  memset 4; ->
cudnn_compute_dot_do_o [cudnn_delta] contraction bf16 cores: 38 x 128, 26 registers
  elements 38912 passes 0.25; #0:81600 #4:81600 -> t:163200
cudnn_sdpa_flash_bprop_64x64x192 contraction bf16 wgmma: 4 x 384, 168 registers shared 232448
  cudnn backward bf16 batch 1 heads 1 queries 300 keys 200 d 192 tile 64x64 kv 1 causal dropout bias persistent; flops 40800000 #1:81600 #2:54400 #3:54400 #0:81600 #6:120000 -> t:163200 #8:54400 #9:54400
cudnn_convert_dq [cudnn_convert] contraction bf16 cores: 20 x 128, 30 registers
  elements 40800 passes 0.46875; t:163200 -> #7:81600
temporaries 164656)");
}

TEST(WorkedAttention, efficient_attention_is_one_kernel_forward) {
  expect_kernels(attention_of(efficient), R"(
fmha_cutlassF_bf16_64x64 contraction bf16 mma: 5,4,3 x 128, 128 registers shared 18944
  efficient forward bf16 batch 3 heads 4 queries 300 keys 200 d 64 tile 64x64 kv 4 an SM 4; flops 115200000 #0:288000 #1:192000 #2:192000 -> #3:288000 #4:14400)");
  Attention masked = attention_of(efficient, DType::fp32);
  masked.bias = masked.dropout = true;
  masked.head_dim = 132;
  expect_kernels(masked, R"(
fmha_cutlassF_fp32_32x128 contraction tf32 mma: 10,4,3 x 128, 168 registers shared 76288
  efficient forward fp32 batch 3 heads 4 queries 300 keys 200 d 160 tile 32x128 kv 4 an SM 3 dropout bias; flops 380160000 #0:1900800 #1:1267200 #2:1267200 #3:720000/2880000 -> #4:1900800 #5:14400)");
}

TEST(WorkedAttention, efficient_backward_adds_to_an_accumulator_unless_a_block_walks_all_keys) {
  expect_kernels(backward(attention_of(efficient)), R"(
fill [fill] contraction fp32 cores: 481 x 128, 16 registers
  elements 246000; -> t:984000
fmha_cutlassB_bf16_64x64 contraction bf16 mma: 4,4,3 x 128, 162 registers shared 42240
  efficient backward bf16 batch 3 heads 4 queries 300 keys 200 d 64 tile 64x64 kv 4 an SM 3; flops 288000000 #0:288000 #1:288000 #2:192000 #3:192000 #5:14400 #4:288000 -> #6:288000 #7:192000 #8:192000
temporaries 984000)");
  Attention full = backward(attention_of(efficient, DType::fp32));
  full.bias = true;
  expect_kernels(full, R"(
mul [mul] contraction fp32 cores: 141 x 128, 32 registers
  elements 144000 active 140.625 tail 4; flops 144000 #0:576000 #4:576000 -> t:576000
reduce_kernel [reduce_rows] contraction fp32 cores: 225 x 512, 32 registers shared 16
  elements 144000; flops 144000 t:576000 -> t:14400
copy_permuted [strided_copy] contraction fp32 no pipe: 15 x 128, 18 registers
  elements 3600 padded 112.5 passes 2; t:14400 -> t:14400
fill [fill] contraction fp32 cores: 481 x 128, 16 registers
  elements 246000; -> t:984000
fmha_cutlassB_fp32_64x64 contraction tf32 mma: 4,4,3 x 128, 232 registers shared 53504
  efficient backward fp32 batch 3 heads 4 queries 300 keys 200 d 64 tile 64x64 kv 4 an SM 2 bias; flops 288000000 #0:576000 #1:576000 #2:384000 #3:384000 #5:14400 #6:720000/2880000 -> #7:576000 #8:384000 #9:384000
temporaries 576000 14400 14400 984000)");
  // 256 heads, two tiles of keys: a block walks both.
  Attention many = backward(attention_of(efficient));
  many.batch = 64;
  many.seq_k = 128;
  expect_kernels(many, R"(
fmha_cutlassB_bf16_64x64 contraction bf16 mma: 1,4,64 x 128, 162 registers shared 42240
  efficient backward bf16 batch 64 heads 4 queries 300 keys 128 d 64 tile 64x128 together 2 kv 4 an SM 3; flops 3.93216e+09 #0:6144000 #1:6144000 #2:2621440 #3:2621440 #5:307200 #4:6144000 -> #6:6144000 #7:2621440 #8:2621440)");
  expect_kernels(with(many, &Attention::batch, 63), R"(
fill [fill] contraction fp32 cores: 10090 x 128, 16 registers
  elements 5166000; -> t:20664000
fmha_cutlassB_bf16_64x64 contraction bf16 mma: 2,4,63 x 128, 162 registers shared 42240
  efficient backward bf16 batch 63 heads 4 queries 300 keys 128 d 64 tile 64x64 kv 4 an SM 3; flops 3.87072e+09 #0:6048000 #1:6048000 #2:2580480 #3:2580480 #5:302400 #4:6048000 -> #6:6048000 #7:2580480 #8:2580480
temporaries 20664000)");
  expect_kernels(with(many, &Attention::seq_k, 129), R"(
fill [fill] contraction fp32 cores: 10250 x 128, 16 registers
  elements 5248000; -> t:20992000
fmha_cutlassB_bf16_64x64 contraction bf16 mma: 3,4,64 x 128, 162 registers shared 42240
  efficient backward bf16 batch 64 heads 4 queries 300 keys 129 d 64 tile 64x64 kv 4 an SM 3; flops 3.96288e+09 #0:6144000 #1:6144000 #2:2641920 #3:2641920 #5:307200 #4:6144000 -> #6:6144000 #7:2641920 #8:2641920
temporaries 20992000)");
  // Long heads of 16 bits: 200 blocks of 12 heads are 16 each, of which 31 tiles of 64 keys take two.
  Attention longer = with(backward(attention_of(efficient)), &Attention::head_dim, 160);
  expect_kernels(with(longer, &Attention::seq_k, 1984), R"(
fill [fill] contraction fp32 cores: 1729 x 128, 16 registers
  elements 885168; -> t:3540672
fmha_cutlassB_bf16_128x64 contraction bf16 mma: 16,4,3 x 256, 151 registers shared 60928
  efficient backward bf16 batch 3 heads 4 queries 300 keys 1984 d 160 tile 128x128 together 2 kv 4; flops 1.142784e+10 #0:1152000 #1:1152000 #2:7618560 #3:7618560 #5:14400 #4:1152000 -> #6:1152000 #7:7618560 #8:7618560
temporaries 3540672)");
  expect_kernels(with(with(longer, &Attention::seq_k, 640), &Attention::batch, 75), R"(
fmha_cutlassB_bf16_128x64 contraction bf16 mma: 1,4,75 x 256, 151 registers shared 60928
  efficient backward bf16 batch 75 heads 4 queries 300 keys 640 d 160 tile 128x640 together 10 kv 4; flops 9.216e+10 #0:28800000 #1:28800000 #2:61440000 #3:61440000 #5:360000 #4:28800000 -> #6:28800000 #7:61440000 #8:61440000)");
}

// Two rows of 400 tokens in sequences of 270 and 130, of three and two tiles of 128: blocks for three each, of which 40
// work; accumulators lie 128 rows apart.
TEST(WorkedAttention, packed_sequences_have_blocks_for_the_longest_of_them) {
  Attention packed = attention_of(flash);
  packed.batch = 2, packed.kv_heads = 4, packed.seq_q = packed.seq_k = 400;
  packed.lengths.list = std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{270, 130});
  expect_kernels(packed, R"(
flash_fprop_64_128x128 contraction bf16 mma: 3,4,4 x 128, 255 registers shared 49152
  flash forward bf16 batch 2 heads 4 queries 400 keys 400 d 64 tile 128x128 kv 4 an SM 2 padded packed; flops 114944000 #0:256000 #1:256000 #2:256000 -> #3:256000 #4:12800)");
  expect_kernels(backward(packed), R"(
flash_bwd_dot_do_o [flash_delta] contraction bf16 cores: 3,4,4 x 256, 46 registers
  elements 327680 active 40; #0:256000 #4:256000 -> t:1310720
flash_bprop_64_128x128 contraction bf16 mma: 3,4,4 x 256, 255 registers shared 147456
  flash backward bf16 batch 2 heads 4 queries 400 keys 400 d 64 tile 128x128 kv 4 padded packed; flops 287360000 #1:256000 #2:256000 #3:256000 #0:256000 -> t:1310720 #7:256000 #8:256000
flash_bwd_convert_dq [flash_convert] contraction bf16 cores: 3,4,4 x 256, 46 registers shared 16384
  elements 327680 active 40; t:1310720 -> #6:256000
temporaries 20992 1343488)");
}

}  // namespace
}  // namespace ridgeline::worked_attention

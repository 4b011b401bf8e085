// Sums, running sums, losses, sorts and images worked out by hand: every kernel whole.
#include <gtest/gtest.h>

#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_sums {
namespace {

using testing_support::expect_kernels;
using Kind = ReductionKind;

// By PyTorch's setReduceConfig on ten SMs of 2,048 threads. Of [100, 6] a thread takes two outputs of three, 2 threads
// stand across and 64 above each other; 100 values are fewer than 16 for each of the 64, which take outputs of their
// own instead: 100 values a thread, four at once.
TEST(WorkedSums, columns_are_added_by_threads_across_and_down) {
  expect_kernels(Reduction{Kind::sum_rows, DType::fp32, 100, 6}, R"(
reduce_kernel [reduce_columns] normalization fp32 cores: 1 x 128, 40 registers shared 16
  elements 600 passes 25; flops 600 #0:2400 -> #1:24)");
  expect_kernels(Reduction{Kind::sum_rows, DType::bf16, 2000, 12}, R"(
reduce_kernel [reduce_columns] normalization bf16 cores: 2 x 128, 54 registers shared 2064
  elements 24000 passes 8; flops 24000 #0:48000 -> #1:24)");
  expect_kernels(Reduction{Kind::sum_rows, DType::fp16, 2000, 12}, R"(
reduce_kernel [reduce_columns] normalization fp16 cores: 2 x 128, 48 registers shared 2064
  elements 24000 passes 8; flops 24000 #0:48000 -> #1:24)");
  expect_kernels(Reduction{Kind::sum_rows, DType::fp16, 300, 14}, R"(
reduce_kernel [reduce_columns] normalization fp16 cores: 2 x 256, 36 registers shared 2064
  elements 4200 passes 2; flops 4200 #0:8400 -> #1:28)");
  expect_kernels(Reduction{Kind::sum_rows, DType::fp32, 255, 7}, R"(
reduce_kernel [reduce_columns] normalization fp32 cores: 1 x 512, 32 registers shared 16
  elements 1785 passes 64; flops 1785 #0:7140 -> #1:28)");
  expect_kernels(Reduction{Kind::sum_rows, DType::fp32, 256, 7}, R"(
reduce_kernel [reduce_columns] normalization fp32 cores: 2 x 512, 32 registers shared 2064
  elements 1792; flops 1792 #0:7168 -> #1:28)");
  expect_kernels(Reduction{Kind::sum_rows, DType::fp32, 1000000, 3}, R"(
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 8; -> t:8
reduce_kernel [reduce_columns] normalization fp32 cores: 2,20 x 512, 32 registers shared 2064
  elements 3000000 passes 49 tail 1; flops 3000000 #0:12000000 -> #1:12
temporaries 480 8)");
  expect_kernels(Reduction{Kind::sum_rows, DType::fp32, 1, 60}, R"(
reduce_kernel [reduce_columns] normalization fp32 cores: 2 x 8, 54 registers shared 16
  elements 60; flops 60 #0:240 -> #1:240)");
}

TEST(WorkedSums, rows_are_added_by_vectors_from_128_values_on) {
  expect_kernels(Reduction{Kind::sum_cols, DType::fp32, 9, 127}, R"(
reduce_kernel [reduce_rows] normalization fp32 cores: 2 x 512, 32 registers shared 2064
  elements 1143; flops 1143 #0:4572 -> #1:36)");
  expect_kernels(Reduction{Kind::sum_cols, DType::fp32, 9, 128}, R"(
reduce_kernel [reduce_rows] normalization fp32 cores: 2 x 256, 32 registers shared 16
  elements 1152; flops 1152 #0:4608 -> #1:36)");
  expect_kernels(Reduction{Kind::mean_cols, DType::bf16, 9, 1001}, R"(
reduce_kernel [reduce_rows] normalization bf16 cores: 2 x 512, 32 registers shared 2064
  elements 9009 passes 4; flops 9009 #0:18018 -> #1:18)");
  expect_kernels(Reduction{Kind::sum_cols, DType::fp16, 1, 4096}, R"(
reduce_kernel [reduce_all] normalization fp16 cores: 1 x 512, 32 registers shared 2064
  elements 4096 passes 2; flops 4096 #0:8192 -> #1:2)");
  expect_kernels(Reduction{Kind::sum_cols, DType::fp32, 3, 70000}, R"(
reduce_kernel [reduce_rows] normalization fp32 cores: 3 x 512, 32 registers shared 2064
  elements 210000 passes 35; flops 210000 #0:840000 -> #1:12)");
  expect_kernels(Reduction{Kind::sum_cols, DType::fp32, 700, 2050}, R"(
reduce_kernel [reduce_rows] normalization fp32 cores: 44 x 512, 32 registers shared 16
  elements 1435000 passes 19; flops 1435000 #0:5740000 -> #1:2800)");
  expect_kernels(Reduction{Kind::sum_cols, DType::fp32, 1, 2048}, R"(
reduce_kernel [reduce_all] normalization fp32 cores: 1 x 512, 32 registers shared 2064
  elements 2048; flops 2048 #0:8192 -> #1:4)");
  expect_kernels(Reduction{Kind::sum_cols, DType::fp32, 2, 2050}, R"(
reduce_kernel [reduce_rows] normalization fp32 cores: 1 x 512, 32 registers shared 2064
  elements 4100 passes 5; flops 4100 #0:16400 -> #1:8)");
}

TEST(WorkedSums, everything_is_added_by_all_blocks) {
  expect_kernels(Reduction{Kind::sum_all, DType::fp32, 3, 50}, R"(
reduce_kernel [reduce_all] normalization fp32 cores: 1 x 32, 32 registers shared 16
  elements 150 passes 1.25; flops 150 #0:600 -> #1:4)");
  expect_kernels(Reduction{Kind::sum_all, DType::bf16, 1000, 3001}, R"(
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 4; -> t:4
reduce_kernel [reduce_all] normalization bf16 cores: 1,40 x 512, 32 registers shared 2064
  elements 3001000 passes 36.75 tail 1; flops 3001000 #0:6002000 -> #1:2
temporaries 160 4)");
  expect_kernels(Reduction{Kind::norm_all, DType::fp32, 10, 25600}, R"(
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 4; -> t:4
reduce_kernel [reduce_all] normalization fp32 cores: 1,32 x 512, 32 registers shared 2064
  elements 256000 passes 4 tail 1; flops 512000 #0:1024000 -> #1:4
temporaries 128 4)");
  EXPECT_THROW(expect_kernels(Reduction{Kind::sum_all, DType::fp32, 0, 5}, ""), std::invalid_argument);
  EXPECT_THROW(expect_kernels(Reduction{Kind::sum_all, DType::fp32, 5, 0}, ""), std::invalid_argument);
}

TEST(WorkedSums, running_sums_go_down_columns_or_along_rows) {
  expect_kernels(Reduction{Kind::scan_rows, DType::fp32, 40, 7}, R"(
tensor_kernel_scan [scan_columns] elementwise fp32 cores: 1 x 7, 32 registers
  elements 280 passes 40; flops 280 #0:1120 -> #1:1120)");
  expect_kernels(Reduction{Kind::scan_rows, DType::bf16, 40, 513}, R"(
tensor_kernel_scan [scan_columns] elementwise bf16 cores: 1,2 x 512, 32 registers
  elements 20520 passes 40; flops 20520 #0:41040 -> #1:41040)");
  expect_kernels(Reduction{Kind::scan_cols, DType::fp32, 30, 100}, R"(
tensor_kernel_scan [scan] elementwise fp32 cores: 2 x 512, 32 registers
  elements 3840 passes 2; flops 3000 #0:12000 -> #1:12000)");
  expect_kernels(Reduction{Kind::scan_cols, DType::int64, 5000, 3}, R"(
tensor_kernel_scan [scan] elementwise int64 cores: 5000 x 512, 32 registers
  elements 5120000; flops 15000 #0:120000 -> #1:120000)");
  expect_kernels(Reduction{Kind::scan_cols, DType::fp32, 2, 5000}, R"(
tensor_kernel_scan [scan] elementwise fp32 cores: 2 x 512, 32 registers
  elements 10240 passes 5; flops 10000 #0:40000 -> #1:40000)");
}

TEST(WorkedSums, losses_gather_and_scatter_in_one_block) {
  expect_kernels(NllLoss{.type = DType::fp32, .rows = 700, .classes = 5}, R"(
nll_loss_forward [nll_loss] elementwise fp32 cores: 1 x 32, 32 registers shared 256
  elements 700 passes 22; #0:14000 #1:5600 -> #2:4)");
  expect_kernels(NllLoss{.type = DType::bf16, .rows = 800, .classes = 100}, R"(
nll_loss_forward [nll_loss] elementwise bf16 cores: 1 x 64, 32 registers shared 512
  elements 800 passes 13; #0:25600 #1:6400 -> #2:4)");
  expect_kernels(NllLoss{.backward = true, .type = DType::bf16, .rows = 70000, .classes = 3}, R"(
fill [fill] elementwise bf16 cores: 206 x 128, 16 registers
  elements 210000; -> #2:420000
nll_loss_backward [nll_loss] elementwise bf16 cores: 1 x 1024, 32 registers
  elements 70000 passes 69; #1:560000 -> #2:420000)");
  expect_kernels(NllLoss{.backward = true, .type = DType::fp32, .rows = 3, .classes = 357913942}, R"(
fill [fill] elementwise fp32 cores: 262144 x 128, 16 registers
  elements 268435456; -> #2:1.07374183e+09
fill [fill] elementwise fp32 cores: 262144 x 128, 16 registers
  elements 268435456; -> #2:1.07374183e+09
fill [fill] elementwise fp32 cores: 262144 x 128, 16 registers
  elements 268435456; -> #2:1.07374183e+09
fill [fill] elementwise fp32 cores: 262144 x 128, 16 registers
  elements 268435456; -> #2:1.07374183e+09
nll_loss_backward [nll_loss] elementwise fp32 cores: 1 x 32, 32 registers
  elements 3; #1:24 -> #2:96)");
  EXPECT_THROW(expect_kernels(NllLoss{.rows = 0, .classes = 3}, ""), std::invalid_argument);
  EXPECT_THROW(expect_kernels(NllLoss{.rows = 3, .classes = 0}, ""), std::invalid_argument);
}

// Keys and the places they come from: 12 bytes of fp32, 10 of 16 bits, 16 of 64-bit indices.
TEST(WorkedSorts, short_rows_are_sorted_in_blocks) {
  expect_kernels(Sort{.type = DType::fp32, .rows = 33, .cols = 32}, R"(
Memcpy DtoD [copy_device] copy fp32 no pipe: 2 x 128, 32 registers
  elements 1056 passes 0.064453125; #0:4224 -> #1:4224
arange [fill] elementwise int64 cores: 1 x 64, 16 registers
  elements 32; -> #2:256
copy_permuted [strided_copy] copy int64 no pipe: 5 x 128, 18 registers
  elements 1056 padded 66 passes 2; t:256 -> t:8448
Memcpy DtoD [copy_device] copy int64 no pipe: 2 x 128, 32 registers
  elements 1056 passes 0.12890625; t:8448 -> #2:8448
bitonicSortKVInPlace [sort_exchange] elementwise fp32 no pipe: 3 x 256, 40 registers shared 6144
  elements 11520 passes 15; #0:12672 -> #1:6336 #2:6336)");
  expect_kernels(Sort{.type = DType::bf16, .rows = 3, .cols = 33}, R"(
Memcpy DtoD [copy_device] copy bf16 no pipe: 1 x 128, 32 registers
  elements 99 passes 0.00302124023; #0:198 -> #1:198
arange [fill] elementwise int64 cores: 1 x 64, 16 registers
  elements 33; -> #2:264
copy_permuted [strided_copy] copy int64 no pipe: 1 x 128, 18 registers
  elements 99 padded 6.1875; t:264 -> t:792
Memcpy DtoD [copy_device] copy int64 no pipe: 1 x 128, 32 registers
  elements 99 passes 0.0120849609; t:792 -> #2:792
radixSortKVInPlace [sort_block] elementwise fp32 no pipe: 3 x 32, 40 registers shared 1536
  elements 4992 passes 52; #0:990 -> #1:495 #2:495)");
  expect_kernels(Sort{.type = DType::fp32, .rows = 3, .cols = 129}, R"(
Memcpy DtoD [copy_device] copy fp32 no pipe: 1 x 128, 32 registers
  elements 387 passes 0.0236206055; #0:1548 -> #1:1548
arange [fill] elementwise int64 cores: 3 x 64, 16 registers
  elements 129; -> #2:1032
copy_permuted [strided_copy] copy int64 no pipe: 2 x 128, 18 registers
  elements 387 padded 24.1875 passes 2; t:1032 -> t:3096
Memcpy DtoD [copy_device] copy int64 no pipe: 1 x 128, 32 registers
  elements 387 passes 0.0472412109; t:3096 -> #2:3096
radixSortKVInPlace [sort_block] elementwise fp32 no pipe: 3 x 32, 40 registers shared 12288
  elements 36288 passes 378; #0:4644 -> #1:2322 #2:2322)");
  expect_kernels(Sort{.type = DType::int64, .rows = 3, .cols = 1025}, R"(
Memcpy DtoD [copy_device] copy int64 no pipe: 4 x 128, 32 registers
  elements 3075 passes 0.375366211; #0:24600 -> #1:24600
arange [fill] elementwise int64 cores: 17 x 64, 16 registers
  elements 1025; -> #2:8200
copy_permuted [strided_copy] copy int64 no pipe: 13 x 128, 18 registers
  elements 3075 padded 192.1875 passes 2; t:8200 -> t:24600
Memcpy DtoD [copy_device] copy int64 no pipe: 4 x 128, 32 registers
  elements 3075 passes 0.375366211; t:24600 -> #2:24600
radixSortKVInPlace [sort_block] elementwise fp32 no pipe: 3 x 128, 40 registers shared 49152
  elements 255744 passes 666; #0:49200 -> #1:24600 #2:24600)");
}

TEST(WorkedSorts, long_rows_and_known_keys_are_sorted_by_radix) {
  expect_kernels(Sort{.type = DType::bf16, .rows = 1, .cols = 9217}, R"(
arange [tiny] elementwise int64 no pipe: 145 x 64, 16 registers
  passes 0.5; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
RadixSortHistogram [sort_histogram] elementwise int64 no pipe: 70 x 128, 72 registers shared 8192
  passes 0; ->
RadixSortExclusiveSum [tiny] elementwise int64 no pipe: 2 x 256, 32 registers shared 2336
 ; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
RadixSortOnesweep [sort_pass] elementwise int64 no pipe: 3 x 384, 80 registers shared 38912
 ; #0:92170 -> #1:46085 #2:46085
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
RadixSortOnesweep [sort_pass] elementwise int64 no pipe: 3 x 384, 80 registers shared 38912
 ; #0:92170 -> #1:46085 #2:46085)");
  expect_kernels(Sort{.type = DType::int64, .rows = 3, .cols = 40, .key_bits = 15}, R"(
arange [tiny] elementwise int64 no pipe: 2 x 64, 16 registers
  passes 0.5; ->
RadixSortSingleTile [tiny] elementwise int64 no pipe: 1 x 256, 64 registers shared 32768
  passes 11.25; ->)");
  const auto passes = [](const Sort& op) {
    int count = 0;
    for (const KernelLaunch& launch : lower_by_shape(op, testing_support::made_up_chip(), {}).launches)
      count += launch.name == "RadixSortOnesweep" ? 1 : 0;
    return count;
  };
  EXPECT_EQ(passes({.type = DType::fp32, .rows = 1, .cols = 4097}), 4);
  EXPECT_EQ(passes({.type = DType::fp32, .rows = 2, .cols = 4097}), 5) << "a bit for two rows";
  EXPECT_EQ(passes({.type = DType::fp32, .rows = 257, .cols = 4097}), 0) << "a block a row";
  EXPECT_EQ(passes({.type = DType::int64, .rows = 1, .cols = 4096, .key_bits = 16}), 2);
  EXPECT_EQ(passes({.type = DType::int64, .rows = 1, .cols = 4096, .key_bits = 17}), 3);
}

TEST(WorkedSorts, the_largest_few_are_picked_and_then_sorted) {
  expect_kernels(Sort{.type = DType::fp32, .rows = 5, .cols = 100, .kept = 1}, R"(
gatherTopK [select_block] elementwise fp32 no pipe: 5 x 128, 40 registers shared 1024
  elements 30720 passes 56; #0:2000 -> #1:30 #2:30)");
  expect_kernels(Sort{.type = DType::bf16, .rows = 19, .cols = 20000, .kept = 50}, R"(
gatherTopK [select_block] elementwise fp32 no pipe: 19 x 1024, 40 registers shared 1024
  elements 3424256 passes 208; #0:760000 -> #1:4750 #2:4750
radixSortKVInPlace [sort_block] elementwise fp32 no pipe: 19 x 32, 40 registers shared 1536
  elements 31616 passes 52; #0:9500 -> #1:4750 #2:4750)");
  expect_kernels(Sort{.type = DType::bf16, .rows = 20, .cols = 1025, .kept = 1}, R"(
fill [tiny] elementwise bf16 no pipe: 1 x 256, 40 registers
  passes 0; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
computeBlockDigitCounts [tiny] elementwise bf16 no pipe: 40 x 256, 40 registers
  passes 3.4; #0:41000 ->
computeDigitCumSum [tiny] elementwise bf16 no pipe: 20 x 256, 40 registers
  passes 2.5; ->
computeWithinKCounts [tiny] elementwise bf16 no pipe: 40 x 256, 40 registers
  passes 4.5; ->
computeBlockDigitCounts [tiny] elementwise bf16 no pipe: 40 x 256, 40 registers
  passes 3.4; #0:41000 ->
computeDigitCumSum [tiny] elementwise bf16 no pipe: 20 x 256, 40 registers
  passes 2.5; ->
computeWithinKCounts [tiny] elementwise bf16 no pipe: 40 x 256, 40 registers
  passes 4.5; ->
computeBlockwiseKthCounts [tiny] elementwise bf16 no pipe: 1 x 256, 40 registers
  passes 2; ->
DeviceScanByKeyInit [tiny] elementwise bf16 no pipe: 1 x 256, 40 registers
  passes 0; ->
DeviceScanByKey [tiny] elementwise bf16 no pipe: 1 x 256, 40 registers
  passes 7; ->
DeviceScanByKeyInit [tiny] elementwise bf16 no pipe: 1 x 256, 40 registers
  passes 0; ->
DeviceScanByKey [tiny] elementwise bf16 no pipe: 1 x 256, 40 registers
  passes 7; ->
gatherTopK [tiny] elementwise bf16 cores: 40 x 256, 32 registers
  passes 12; #0:41000 -> #1:100 #2:100)");
  expect_kernels(Sort{.type = DType::bf16, .rows = 30, .cols = 1024, .kept = 4}, R"(
gatherTopK [select_block] elementwise fp32 no pipe: 30 x 1024, 40 registers shared 1024
  elements 737280 passes 56; #0:61440 -> #1:600 #2:600
bitonicSortKVInPlace [sort_exchange] elementwise fp32 no pipe: 2 x 256, 40 registers shared 6144
  elements 7680 passes 15; #0:1200 -> #1:600 #2:600)");
  const auto names = [](const Sort& op) {
    std::string text;
    for (const KernelLaunch& launch : lower_by_shape(op, testing_support::made_up_chip(), {}).launches)
      text += launch.name + ' ';
    return text;
  };
  EXPECT_EQ(names({.type = DType::uint8, .rows = 19, .cols = 20001, .kept = 4096}),
            "fill Memset Memset computeBlockDigitCounts computeDigitCumSum computeWithinKCounts "
            "computeBlockwiseKthCounts DeviceScanByKeyInit DeviceScanByKey DeviceScanByKeyInit DeviceScanByKey "
            "gatherTopK radixSortKVInPlace ");
  EXPECT_EQ(names({.type = DType::uint8, .rows = 19, .cols = 20001, .kept = 4097}),
            "fill Memset Memset computeBlockDigitCounts computeDigitCumSum computeWithinKCounts "
            "computeBlockwiseKthCounts DeviceScanByKeyInit DeviceScanByKey DeviceScanByKeyInit DeviceScanByKey "
            "gatherTopK ");
  EXPECT_EQ(names({.rows = 19, .cols = 20, .kept = 20}), "gatherTopK bitonicSortKVInPlace ") << "all of a row";
  for (const Sort& none : {Sort{.rows = 0, .cols = 4}, Sort{.rows = 4, .cols = 0},
                           Sort{.rows = 4, .cols = 4, .kept = -1}, Sort{.rows = 4, .cols = 4, .kept = 5}})
    EXPECT_THROW(expect_kernels(none, ""), std::invalid_argument);
}

ImageOp image_of(ImageFunction function, DType type, std::int64_t batch, std::int64_t channels, std::int64_t size,
                 bool backward = false, bool channels_last = false) {
  return {.function = function,
          .backward = backward,
          .channels_last = channels_last,
          .type = type,
          .batch = batch,
          .channels = channels,
          .size = size};
}

// 3 images of 5 channels of 7 x 7: 735 values, 147 a channel.
TEST(WorkedImages, batch_normalisation_has_a_block_a_channel) {
  constexpr auto kNorm = ImageFunction::batch_norm;
  expect_kernels(image_of(kNorm, DType::fp32, 3, 5, 7), R"(
bn_fw_tr [batch_norm_single] normalization fp32 cores: 5 x 512, 47 registers shared 816
  elements 735 passes 0.0717773438 again 0 of rows 588; flops 5880 #0:2940 -> #1:2940)");
  expect_kernels(image_of(kNorm, DType::fp16, 3, 5, 7, true, true), R"(
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 40; -> t:40
batchnorm_bwtr_nhwc_semiPersist [batch_norm_persistent_backward] normalization fp16 cores: 1 x 512, 63 registers shared 61440
  elements 735 padded 735 passes 0.358886719 again 2940 of rows 2940; flops 5880 #0:1470 #1:1470 -> #2:1470)");
  expect_kernels(image_of(kNorm, DType::fp32, 10, 5, 100), R"(
bn_fw_tr [batch_norm_single] normalization fp32 cores: 5 x 512, 48 registers shared 144
  elements 500000 passes 97.65625 again 2000000 of rows 400000; flops 4000000 #0:2000000 -> #1:2000000)");
  expect_kernels(image_of(kNorm, DType::fp32, 10, 5, 100, true), R"(
bn_bw [batch_norm_single_backward] normalization fp32 cores: 5 x 512, 48 registers shared 144
  elements 500000 passes 195.3125 again 4000000 of rows 800000; flops 4000000 #0:2000000 #1:2000000 -> #2:2000000)");
  expect_kernels(image_of(kNorm, DType::bf16, 3, 5, 7), R"(
batch_norm_statistics [batch_norm_statistics] normalization bf16 cores: 5 x 512, 27 registers shared 640
  elements 735; flops 2940 #0:1470 ->
batch_norm_update [tiny] normalization fp32 cores: 1 x 128, 56 registers
  passes 1.30830078; ->
batch_norm_transform [batch_norm_transform] normalization bf16 cores: 5,3 x 64, 23 registers
  elements 735; flops 1470 #0:1470 -> #1:1470)");
  expect_kernels(image_of(kNorm, DType::bf16, 3, 100000, 20, true), R"(
batch_norm_backward [batch_norm_backward] normalization bf16 cores: 100000 x 512, 32 registers shared 256
  elements 120000000 passes 6 again 480000000 of rows 4800; flops 960000000 #0:240000000 #1:240000000 -> #2:240000000)");
  expect_kernels(image_of(kNorm, DType::bf16, 3, 5, 7, false, true), R"(
batch_norm_collect_statistics_channels_last [batch_norm_moments_last] normalization bf16 cores: 2 x 32, 40 registers shared 6145
  elements 735 passes 5; flops 2940 #0:1470 ->
batch_norm_update [tiny] normalization fp32 cores: 1 x 128, 56 registers
  passes 1.30830078; ->
batch_norm_transform_input_channels_last [batch_norm_transform_last] normalization bf16 cores: 2,2 x 32, 32 registers
  elements 735 passes 3; flops 1470 #0:1470 -> #1:1470)");
  expect_kernels(image_of(kNorm, DType::bf16, 30, 65, 40, true, true), R"(
fill [fill] elementwise int32 cores: 1 x 128, 16 registers
  elements 3; -> t:12
batch_norm_backward_reduce_channels_last [batch_norm_sums_last] normalization bf16 cores: 3,128 x 512, 40 registers shared 4097
  elements 3120000 passes 6; flops 12480000 #0:6240000 #1:6240000 ->
batch_norm_backward_elemt_channels_last [batch_norm_gradient_last] normalization bf16 cores: 3,128 x 512, 32 registers
  elements 3120000 passes 6; flops 6240000 #0:6240000 #1:6240000 -> #2:6240000)");
  // 112 KiB of shared memory for a channel: 28,672 values of four bytes; of two bytes 40 KiB more in registers.
  const auto rereads = [&](const ImageOp& op) {
    return std::get<MemoryBoundWork>(lower_by_shape(op, testing_support::made_up_chip(), {}).launches[0].work)
               .reread_bytes > 0.0;
  };
  EXPECT_FALSE(rereads(image_of(kNorm, DType::fp32, 7, 2, 64)));
  EXPECT_TRUE(rereads(image_of(kNorm, DType::fp32, 8, 2, 64)));
  EXPECT_FALSE(rereads(image_of(kNorm, DType::fp16, 19, 2, 64)));
  EXPECT_TRUE(rereads(image_of(kNorm, DType::fp16, 20, 2, 64)));
  EXPECT_FALSE(rereads(image_of(kNorm, DType::fp16, 19, 2, 45, true)));
  EXPECT_TRUE(rereads(image_of(kNorm, DType::fp16, 20, 2, 45, true)));
}

TEST(WorkedImages, pooling_takes_four_pixels_and_upsampling_gives_four) {
  expect_kernels(image_of(ImageFunction::max_pool2d, DType::fp32, 3, 5, 7), R"(
max_pool_forward [max_pool] elementwise fp32 cores: 1 x 256, 23 registers
  elements 135 padded 540; flops 405 #0:2940 -> #1:540 t:1080)");
  expect_kernels(image_of(ImageFunction::max_pool2d, DType::bf16, 3, 5, 21, true), R"(
fill [fill] elementwise bf16 cores: 7 x 128, 16 registers
  elements 6615; -> #2:13230
max_pool_backward [max_pool_backward] elementwise bf16 cores: 2,3,5 x 256, 32 registers
  elements 6615 padded 6615; flops 4500 #0:3000 #1:12000 -> #2:13230)");
  expect_kernels(image_of(ImageFunction::upsample_nearest2d, DType::fp32, 3, 5, 14), R"(
upsample_nearest2d [upsample] elementwise fp32 cores: 2,2 x 512, 30 registers
  elements 2940 padded 3840 passes 2; #0:2940 -> #1:11760)");
  expect_kernels(image_of(ImageFunction::upsample_nearest2d, DType::bf16, 30, 50, 34, true), R"(
upsample_nearest2d [upsample] elementwise bf16 cores: 2,3,375 x 512, 30 registers
  elements 1734000 padded 4608000 passes 4; #0:3468000 -> #1:867000)");
  expect_kernels(image_of(ImageFunction::upsample_nearest2d, DType::bf16, 300, 1000, 2), R"(
upsample_nearest2d [upsample] elementwise bf16 cores: 1,1,586 x 512, 30 registers
  elements 1200000 padded 1200000 passes 4; #0:600000 -> #1:2400000)");
  expect_kernels(image_of(ImageFunction::upsample_nearest2d, DType::bf16, 300, 1000, 34), R"(
upsample_nearest2d [upsample] elementwise bf16 cores: 2,3,65535 x 512, 30 registers
  elements 346800000 padded 921600000 passes 5; #0:173400000 -> #1:693600000)");
  expect_kernels(image_of(ImageFunction::relu, DType::bf16, 3, 5, 7), R"(
relu [relu] elementwise bf16 cores: 1 x 128, 32 registers
  elements 735 active 0.717773438 tail 5; flops 735 #0:1470 -> #1:1470)");
  expect_kernels(image_of(ImageFunction::relu, DType::fp32, 3, 5, 7, true), R"(
threshold_backward [mul] elementwise fp32 cores: 1 x 128, 32 registers
  elements 735 active 0.717773438 tail 5; flops 735 #0:2940 #1:2940 -> #2:2940)");
  EXPECT_THROW(expect_kernels(image_of(ImageFunction::max_pool2d, DType::fp32, 3, 5, 1), ""), std::invalid_argument);
  EXPECT_THROW(expect_kernels(image_of(ImageFunction::relu, DType::fp32, 0, 5, 7), ""), std::invalid_argument);
  EXPECT_THROW(expect_kernels(image_of(ImageFunction::relu, DType::fp32, 3, 0, 7), ""), std::invalid_argument);
  EXPECT_THROW(expect_kernels(image_of(ImageFunction::relu, DType::fp32, 3, 5, 0), ""), std::invalid_argument);
}

}  // namespace
}  // namespace ridgeline::worked_sums

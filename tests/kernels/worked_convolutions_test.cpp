// Convolutions worked out by hand: every kernel whole, on chips that one kernel fits, which leave nothing to choose.
//
// 3 images of 10 channels of 6 x 6 to 20 filters of 3 x 3 in 16 bits: 3 x 10 x 36 x 2 = 2,160 bytes of images, 4,320 of
// results, 3,600 of filters. Loads of 16 bytes hold 8 channels: 16 and 24 are read where 10 and 20 are.
#include <gtest/gtest.h>

#include <stdexcept>

#include "sim/kernels/convolution/convolution_forms.h"
#include "tests/kernels/one_tile_chips.h"
#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_convolutions {
namespace {

using testing_support::chip_of_cores;
using testing_support::chip_of_one_tile;
using testing_support::expect_kernels;
using testing_support::text_of;
using Role = Gathering::Role;

Convolution convolution_of(DType type, bool channels_last) {
  return {.channels_last = channels_last,
          .type = type,
          .batch = 3,
          .in_channels = 10,
          .size = 6,
          .out_channels = 20,
          .kernel = 3};
}
Convolution backward(Convolution op) {
  op.backward = true;
  return op;
}
void expect_alone(const Convolution& op, std::string_view listing, const Gpu& gpu = chip_of_one_tile()) {
  expect_kernels(op, listing, {}, gpu);
}

TEST(WorkedConvolutions, channels_last_are_gathered_as_they_are) {
  expect_alone(convolution_of(DType::bf16, true), R"(
fprop_implicit_gemm_bf16_32x32x8 contraction fp32 cores: 4 x 64, 80 registers shared 6144
  simt bf16 108x20x90 nt by 16 bytes, tile 32x32x8 stages 2 an SM 7 distinct 0.25 gathers forward: taps 9 channels 10 phases 1; flops 388800 #0:2160/23040 #1:3600/23040 -> #2:4320)");
  expect_alone(backward(convolution_of(DType::bf16, true)), R"(
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 5184; -> t:5184
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 2160; #0:4320 -> t:5184
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 5760; -> t:5760
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 1800; #2:3600 -> t:5760
dgrad_implicit_gemm_bf16_128x32x32 contraction bf16 mma: 1 x 128, 128 registers shared 40960
  mma_sync bf16 108x16x216 nt by 16 bytes, tile 128x32x32 stages 2 distinct 0.147849462 gathers input gradient: taps 9 channels 24 phases 1; flops 388800 #0:4320/55296 #2:3600/13824 -> #3:2160
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 1080; #3:2160 -> t:3456
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 5184; -> t:5184
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 2160; #0:4320 -> t:5184
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 3456; -> t:3456
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 1080; #1:2160 -> t:3456
wgrad_implicit_gemm_bf16_128x32x32 contraction bf16 mma: 5 x 128, 128 registers shared 40960
  mma_sync bf16 24x144x108 tn by 16 bytes, tile 128x32x32 stages 2 distinct 0.178571429 gathers weight gradient: taps 9 channels 1 phases 1; flops 388800 #0:4320/138240 #1:2160/34560 -> #4:3600
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 1800; #4:3600 -> t:5760
temporaries 5184 5760 3456 5184 3456 5760)");
}

TEST(WorkedConvolutions, tf32_is_rounded_before_kernels_that_do_not_round) {
  expect_alone(convolution_of(DType::tf32, true), R"(
convertTensor copy tf32 no pipe: 4096 x 128, 32 registers
  copy 4320 blocks 4096; #0:4320 -> t:4320
convertTensor copy tf32 no pipe: 4096 x 128, 32 registers
  copy 7200 blocks 4096; #1:7200 -> t:7200
fprop_implicit_gemm_tf32_64x64x16 contraction tf32 mma: 2 x 128, 96 registers shared 49152
  mma_sync tf32 108x20x108 nt by 16 bytes, tile 64x64x16 stages 2 distinct 0.208333333 gathers forward: taps 9 channels 12 phases 1; flops 388800 #0:4320/55296 #1:7200/55296 -> #2:8640
temporaries 4320 7200)");
}

// In NCHW images, filters and results are turned, those with channels that do not fill a load into cleared memory.
TEST(WorkedConvolutions, images_in_nchw_are_turned_and_back) {
  Convolution large = convolution_of(DType::bf16, false);
  large.kernel = 7, large.size = 9;  // 16 bits have no kernel of the CUDA cores for it
  expect_alone(large, R"(
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 7776; -> t:7776
nchwToNhwc copy bf16 no pipe: 3,1,3 x 256, 32 registers shared 2112
  layout change 9720 blocks 9; #0:4860 -> t:4860
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 31360; -> t:31360
nchwToNhwc copy bf16 no pipe: 2,1,20 x 256, 32 registers shared 2112
  layout change 39200 blocks 40; #1:19600 -> t:19600
fprop_implicit_gemm_bf16_128x32x32 contraction bf16 mma: 2 x 128, 128 registers shared 40960
  mma_sync bf16 243x24x784 nt by 16 bytes, tile 128x32x32 stages 2 distinct 0.0584250554 gathers forward: taps 49 channels 16 phases 1; flops 4762800 #0:4860/401408 #1:19600/100352 -> #2:9720
nchwToNhwc copy bf16 no pipe: 3,1,3 x 256, 32 registers shared 2112
  layout change 19440 blocks 9; #2:9720 -> t:9720
temporaries 4860 19600 9720)");
  expect_alone(backward(large), R"(
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 11664; -> t:11664
nchwToNhwc copy bf16 no pipe: 3,1,3 x 256, 32 registers shared 2112
  layout change 19440 blocks 9; #0:9720 -> t:9720
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 31360; -> t:31360
nchwToNhwc copy bf16 no pipe: 2,1,20 x 256, 32 registers shared 2112
  layout change 39200 blocks 40; #2:19600 -> t:19600
dgrad_implicit_gemm_bf16_128x32x32 contraction bf16 mma: 2 x 128, 128 registers shared 40960
  mma_sync bf16 243x16x1176 nt by 16 bytes, tile 128x32x32 stages 2 distinct 0.0481312216 gathers input gradient: taps 49 channels 24 phases 1; flops 4762800 #0:9720/602112 #2:19600/150528 -> #3:4860
nchwToNhwc copy bf16 no pipe: 3,1,3 x 256, 32 registers shared 2112
  layout change 9720 blocks 9; #3:4860 -> t:4860
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 11664; -> t:11664
nchwToNhwc copy bf16 no pipe: 3,1,3 x 256, 32 registers shared 2112
  layout change 19440 blocks 9; #0:9720 -> t:9720
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 7776; -> t:7776
nchwToNhwc copy bf16 no pipe: 3,1,3 x 256, 32 registers shared 2112
  layout change 9720 blocks 9; #1:4860 -> t:4860
wgrad_implicit_gemm_bf16_128x32x32 contraction bf16 mma: 25 x 128, 128 registers shared 40960
  mma_sync bf16 24x784x243 tn by 16 bytes, tile 128x32x32 stages 2 distinct 0.0371287129 gathers weight gradient: taps 49 channels 1 phases 1; flops 4762800 #0:9720/1555200 #1:4860/388800 -> #4:19600
nchwToNhwc copy bf16 no pipe: 2,1,20 x 256, 32 registers shared 2112
  layout change 39200 blocks 40; #4:19600 -> t:19600
temporaries 9720 19600 4860 9720 4860 19600)");
  large.in_channels = 16, large.out_channels = 24;
  expect_alone(large, R"(
nchwToNhwc copy bf16 no pipe: 3,1,3 x 256, 32 registers shared 2112
  layout change 15552 blocks 9; #0:7776 -> t:7776
nchwToNhwc copy bf16 no pipe: 2,1,24 x 256, 32 registers shared 2112
  layout change 75264 blocks 48; #1:37632 -> t:37632
fprop_implicit_gemm_bf16_128x32x32 contraction bf16 mma: 2 x 128, 128 registers shared 40960
  mma_sync bf16 243x24x784 nt by 16 bytes, tile 128x32x32 stages 2 distinct 0.108461362 gathers forward: taps 49 channels 16 phases 1; flops 9144576 #0:7776/401408 #1:37632/100352 -> #2:11664
nchwToNhwc copy bf16 no pipe: 3,1,3 x 256, 32 registers shared 2112
  layout change 23328 blocks 9; #2:11664 -> t:11664
temporaries 7776 37632 11664)");
}

// A stride of two leaves three pixels of four out where the filter is one pixel wide, none where it is three.
TEST(WorkedConvolutions, a_stride_wider_than_the_filter_reads_a_part_of_the_images) {
  Convolution op = convolution_of(DType::bf16, true);
  op.kernel = 1, op.stride = 2;
  expect_alone(op, R"(
fprop_implicit_gemm_bf16_32x32x8 contraction fp32 cores: 1 x 64, 80 registers shared 6144
  simt bf16 27x20x10 nt by 16 bytes, tile 32x32x8 stages 2 an SM 7 gathers forward: taps 1 channels 10 phases 1; flops 10800 #0:540/640 #1:400/640 -> #2:1080)");
  expect_alone(backward(op), R"(
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 1296; -> t:1296
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 540; #0:1080 -> t:1296
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 640; -> t:640
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 200; #2:400 -> t:640
dgrad_implicit_gemm_bf16_128x32x32 contraction bf16 mma: 4 x 128, 128 registers shared 40960
  mma_sync bf16 108x16x6 nt by 16 bytes, tile 128x32x32 stages 2 distinct 0.994623656 gathers input gradient: taps 1 channels 24 phases 4; flops 10800 #0:1080/6144 #2:400/1536 -> #3:2160
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 1080; #3:2160 -> t:3456
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 1296; -> t:1296
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 540; #0:1080 -> t:1296
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 3456; -> t:3456
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 1080; #1:2160 -> t:3456
wgrad_implicit_gemm_bf16_128x32x32 contraction bf16 mma: 1 x 128, 128 registers shared 40960
  mma_sync bf16 24x16x27 tn by 16 bytes, tile 128x32x32 stages 2 distinct 0.75 gathers weight gradient: taps 1 channels 1 phases 1; flops 10800 #0:1080/6912 #1:540/1728 -> #4:400
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 200; #4:400 -> t:640
temporaries 1296 640 3456 1296 3456 640)");
  op.kernel = 3;
  expect_alone(op, R"(
fprop_implicit_gemm_bf16_32x32x8 contraction fp32 cores: 1 x 64, 80 registers shared 6144
  simt bf16 27x20x90 nt by 16 bytes, tile 32x32x8 stages 2 an SM 7 distinct 0.680851064 gathers forward: taps 9 channels 10 phases 1; flops 97200 #0:2160/5760 #1:3600/5760 -> #2:1080)");
}

TEST(WorkedConvolutions, transposed_ones_grow_images_by_their_stride) {
  Convolution op = convolution_of(DType::bf16, true);
  op.transposed = true, op.stride = 2, op.kernel = 2;
  expect_alone(op, R"(
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 2304; -> t:2304
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 960; #0:1920 -> t:2304
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 2560; -> t:2560
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 800; #1:1600 -> t:2560
dgrad_implicit_gemm_bf16_128x32x32 contraction bf16 mma: 4 x 128, 128 registers shared 40960
  mma_sync bf16 108x16x24 nt by 16 bytes, tile 128x32x32 stages 2 distinct 0.591397849 gathers input gradient: taps 4 channels 24 phases 4; flops 76800 #0:1920/24576 #1:1600/6144 -> #2:2160
nhwcAddPadding [channel_padding] copy bf16 cores: 20 x 256, 32 registers
  elements 1080; #2:2160 -> t:3456
temporaries 2304 2560 3456)");
}

// Single pixels are plain products: of all pixels in channels last, of each image in NCHW where rows hold whole loads.
TEST(WorkedConvolutions, single_pixels_are_plain_products) {
  Convolution op = convolution_of(DType::bf16, true);
  op.kernel = 1;
  op.in_channels = 16, op.out_channels = 24;
  expect_alone(op, R"(
sm80_tensorop_bf16_gemm_32x64_32x3_tn_align8 contraction bf16 mma: 2 x 128, 90 registers shared 20000
  mma_sync bf16 108x24x16 nt by 16 bytes, tile 64x32x32 stages 3 built with 3 an SM 2 of cuDNN; flops 82944 #0:3456 #1:768/1536 -> #2:5184)");
  expect_alone(backward(op), R"(
sm80_tensorop_bf16_gemm_32x64_32x3_tn_align8 contraction bf16 mma: 2 x 128, 90 registers shared 20000
  mma_sync bf16 108x16x24 nt by 16 bytes, tile 64x32x32 stages 3 built with 3 an SM 2 of cuDNN; flops 82944 #0:5184 #2:768/1536 -> #3:3456
sm80_tensorop_bf16_gemm_32x64_32x3_nt_align8 contraction bf16 mma: 1 x 128, 90 registers shared 20000
  mma_sync bf16 24x16x108 tn by 16 bytes, tile 64x32x32 stages 3 built with 3 an SM 2 of cuDNN; flops 82944 #0:5184 #1:3456 -> #4:768)");
  op.channels_last = false, op.size = 4;
  expect_alone(op, R"(
sm80_tensorop_bf16_gemm_32x64_32x3_nn_align8 contraction bf16 mma: 1,1,3 x 128, 90 registers shared 20000
  mma_sync bf16 3 of 24x16x16 nn by 16 bytes, tile 64x32x32 stages 3 built with 3 an SM 2 of cuDNN; flops 36864 #0:1536/2304 #1:768/1536 -> #2:2304)");
  expect_alone(backward(op), R"(
sm80_tensorop_bf16_gemm_32x64_32x3_nn_align8 contraction bf16 mma: 1,1,3 x 128, 90 registers shared 20000
  mma_sync bf16 3 of 16x16x24 nn by 16 bytes, tile 64x32x32 stages 3 built with 3 an SM 2 of cuDNN; flops 36864 #0:2304 #2:768/2304 -> #3:1536
sm80_tensorop_bf16_gemm_32x64_32x3_nt_align8 contraction bf16 mma: 1 x 128, 90 registers shared 20000
  mma_sync bf16 24x16x48 tn by 16 bytes, tile 64x32x32 stages 3 built with 3 an SM 2 of cuDNN; flops 36864 #0:2304 #1:1536 -> #4:768)");
}

TEST(WorkedConvolutions, the_cuda_cores_take_nchw_and_turn_channels_last) {
  expect_alone(convolution_of(DType::fp32, false), R"(
fprop_implicit_gemm_fp32_32x32x8 contraction fp32 cores: 4 x 64, 80 registers shared 6144
  simt fp32 108x20x90 nt by 16 bytes, tile 32x32x8 stages 2 an SM 2 distinct 0.25 gathers forward: taps 9 channels 10 phases 1; flops 388800 #0:4320/46080 #1:7200/46080 -> #2:8640)",
               chip_of_cores());
  expect_alone(convolution_of(DType::fp32, true), R"(
fprop_implicit_gemm_fp32_32x32x8 contraction fp32 cores: 4 x 64, 80 registers shared 6144
  simt fp32 108x20x90 nt by 16 bytes, tile 32x32x8 stages 2 an SM 2 distinct 0.25 gathers forward: taps 9 channels 10 phases 1; flops 388800 #0:4320/46080 #1:7200/46080 -> #2:8640)",
               chip_of_cores());
  Convolution few = convolution_of(DType::fp32, false);
  few.in_channels = 7;
  expect_alone(few, R"(
fprop_implicit_gemm_fp32_32x32x8 contraction fp32 cores: 4 x 64, 80 registers shared 6144
  simt fp32 108x20x63 nt by 16 bytes, tile 32x32x8 stages 2 an SM 2 distinct 0.25 gathers forward: taps 9 channels 7 phases 1 dense; flops 272160 #0:3024/32256 #1:5040/32256 -> #2:8640)",
               chip_of_cores());
  few.in_channels = 8, few.kernel = 7;
  expect_alone(few, R"(
fprop_implicit_gemm_fp32_32x32x8 contraction fp32 cores: 4 x 64, 80 registers shared 6144
  simt fp32 108x20x392 nt by 16 bytes, tile 32x32x8 stages 2 an SM 2 distinct 0.173469388 gathers forward: taps 49 channels 8 phases 1 indexed; flops 1693440 #0:3456/200704 #1:31360/200704 -> #2:8640)",
               chip_of_cores());
}

/// Names apart, every form of one direction.
std::string forms_text(const Convolution& op, Role role, const Gpu& gpu) {
  std::string text;
  for (const KernelLaunch& launch : convolution_forms(op, role, gpu)) text += "\n" + text_of(launch);
  return text;
}
// Input gradients are gathered or added to images, weight gradients gathered or added to filters, 512 pixels a part.
TEST(WorkedConvolutions, gradients_on_the_cuda_cores_are_gathered_or_scattered) {
  const Convolution op = backward(convolution_of(DType::fp32, false));
  EXPECT_EQ(forms_text(op, Role::input_gradient, chip_of_cores()), R"(
 contraction fp32 cores: 4 x 64, 80 registers shared 6144
  simt fp32 108x10x180 nt by 16 bytes, tile 32x32x8 stages 2 an SM 2 distinct 0.186440678 gathers input gradient: taps 9 channels 20 phases 1; flops 388800 #0:8640/92160 #2:7200/92160 -> #3:4320
 contraction fp32 cores: 12 x 64, 120 registers shared 6144
  simt fp32 3 of 90x36x20 nt by 16 bytes, tile 64x32x8 stages 2 an SM 2 distinct 0.186440678 gathers images: taps 1 channels 1 phases 1; flops 388800 #0:8640/61440 #2:7200/30720 -> #3:4320)");
  EXPECT_EQ(forms_text(op, Role::weight_gradient, chip_of_cores()), R"(
 contraction fp32 cores: 3 x 64, 80 registers shared 6144
  simt fp32 20x90x108 tn by 16 bytes, tile 32x32x8 stages 2 an SM 2 distinct 0.272727273 gathers weight gradient: taps 9 channels 1 phases 1; flops 388800 #0:8640/41472 #1:4320/41472 -> #4:7200
 contraction fp32 cores: 9 x 64, 120 registers shared 6144
  simt fp32 3 of 20x90x36 tn by 16 bytes, tile 32x32x8 stages 2 an SM 2 distinct 0.272727273 gathers filters: taps 1 channels 1 phases 1 scattered 3.55555556; flops 388800 #0:8640/41472 #1:4320/41472 -> #4:7200)");
  Convolution large = op;
  large.size = 30, large.stride = 2, large.kernel = 7, large.channels_last = true;
  EXPECT_EQ(forms_text(large, Role::input_gradient, chip_of_cores()), R"(
 contraction fp32 cores: 85 x 64, 80 registers shared 6144
  simt fp32 2700x10x980 nt by 16 bytes, tile 32x32x8 stages 2 an SM 2 distinct 0.035093004 gathers input gradient: taps 49 channels 20 phases 1; flops 13230000 #0:54000/10662400 #2:39200/10662400 -> #3:108000
 contraction fp32 cores: 192 x 64, 120 registers shared 6144
  simt fp32 3 of 490x225x20 nt by 16 bytes, tile 64x32x8 stages 2 an SM 2 distinct 0.035093004 gathers images: taps 1 channels 1 phases 1; flops 13230000 #0:54000/983040 #2:39200/491520 -> #3:108000)");
  EXPECT_EQ(forms_text(large, Role::weight_gradient, chip_of_cores()), R"(
 contraction fp32 cores: 16 x 64, 80 registers shared 6144
  simt fp32 20x490x675 tn by 16 bytes, tile 32x32x8 stages 2 an SM 2 distinct 0.117647059 gathers weight gradient: taps 49 channels 1 phases 1 indexed; flops 13230000 #0:54000/1382400 #1:108000/1382400 -> #4:39200
 contraction fp32 cores: 48 x 64, 120 registers shared 6144
  simt fp32 3 of 20x490x225 tn by 16 bytes, tile 32x32x8 stages 2 an SM 2 distinct 0.117647059 gathers filters: taps 1 channels 1 phases 1; flops 13230000 #0:54000/1382400 #1:108000/1382400 -> #4:39200)");
  large.kernel = 1, large.stride = 1, large.type = DType::bf16;
  EXPECT_EQ(forms_text(large, Role::forward, chip_of_one_tile()), "") << "a plain product";
}

// 768 pixels are 24 steps: five tiles of filters by taps in two splits fill ten SMs, in three they do not fit them.
TEST(WorkedConvolutions, weight_gradients_on_tensor_cores_are_split_while_blocks_are_resident) {
  Convolution op = backward(convolution_of(DType::bf16, true));
  op.size = 16;
  std::string text;
  for (const KernelLaunch& launch : convolution_forms(op, Role::weight_gradient, chip_of_one_tile()))
    if (launch.pipe == Pipe::tensor_mma) text += "\n" + text_of(launch);
  EXPECT_EQ(text, R"(
 contraction bf16 mma: 5 x 128, 128 registers shared 40960
  mma_sync bf16 24x144x768 tn by 16 bytes, tile 128x32x32 stages 2 distinct 0.178571429 gathers weight gradient: taps 9 channels 1 phases 1; flops 2764800 #0:30720/983040 #1:15360/245760 -> #4:3600
 contraction bf16 mma: 10 x 128, 128 registers shared 40960
  mma_sync bf16 24x144x768 tn by 16 bytes, tile 128x32x32 stages 2 splits 2 distinct 0.178571429 gathers weight gradient: taps 9 channels 1 phases 1; flops 2764800 #0:30720/983040 #1:15360/245760 -> #4:3600)");
}

// 900 pixels are two parts of 450 for each of three images.
TEST(WorkedConvolutions, filters_are_added_up_in_parts_of_512_pixels) {
  Convolution op = backward(convolution_of(DType::fp32, false));
  op.size = 30;
  const auto parts = [&] {
    return std::get<GemmWork>(convolution_forms(op, Role::weight_gradient, chip_of_cores()).back().work);
  };
  EXPECT_EQ(parts().batch, 6);
  EXPECT_EQ(parts().k, 450);
  op.size = 16, op.batch = 2;
  EXPECT_EQ(parts().batch, 2) << "256 pixels";
  op.size = 23;
  EXPECT_EQ(parts().batch, 4) << "529 pixels";
  EXPECT_EQ(parts().k, 265);
}

// Of 5 x 5 input pixels at a stride of two 3 x 3 outputs are more than a quarter, so that not all have a tap of their
// own: 2 x 75 x 16 x 24 / 4 FLOPs, not 2 x 27 x 16 x 24.
TEST(WorkedConvolutions, gradients_of_a_stride_that_does_not_divide_the_image_count_the_taps_that_meet) {
  Convolution op = backward(convolution_of(DType::bf16, true));
  op.kernel = 1, op.stride = 2, op.size = 5, op.in_channels = 16, op.out_channels = 24;
  EXPECT_EQ(lower(op, chip_of_one_tile(), {}).launches.at(0).flops, 14400.0);
  op.size = 6;  // as many outputs
  EXPECT_EQ(lower(op, chip_of_one_tile(), {}).launches.at(0).flops, 20736.0);
}

/// Names of the kernels, tiles apart.
std::string names_of(const Convolution& op, const Gpu& gpu) {
  std::string text;
  for (const KernelLaunch& launch : lower(op, gpu, {}).launches) {
    std::string name = launch.name;
    if (const auto tile = name.find("_implicit"); tile != std::string::npos)
      name = name.substr(0, tile) + (launch.pipe == Pipe::tensor_wgmma ? "-wgmma"
                                     : launch.pipe == Pipe::tensor_mma ? "-mma"
                                                                       : "-cores");
    text += (text.empty() ? "" : " ") + name;
  }
  return text;
}
// A recording says which instructions a direction ran; where nothing has them, any kernel stands for it. Kernels of
// wgmma clear a counter of their tiles, but for weights.
TEST(WorkedConvolutions, a_recorded_direction_keeps_its_instructions) {
  using Instructions = LibraryKernel::Instructions;
  const Gpu hopper = load_gpu("nvidia-h200-sxm-141gb");
  Convolution op = convolution_of(DType::bf16, true);
  op.batch = 16, op.in_channels = 64, op.out_channels = 64, op.size = 28;
  op.ran.instructions = Instructions::wgmma;
  EXPECT_EQ(names_of(op, hopper), "Memset fprop-wgmma");
  op.ran.instructions = Instructions::mma_sync;
  EXPECT_EQ(names_of(op, hopper), "fprop-mma");
  op.ran.instructions = Instructions::simt;  // channels last has none of the CUDA cores beside them
  EXPECT_NE(names_of(op, hopper).find("fprop-"), std::string::npos);
  op.channels_last = false;
  EXPECT_EQ(names_of(op, hopper), "fprop-cores");
  op.backward = true;
  op.ran.instructions = Instructions::wgmma, op.ran_weights.instructions = Instructions::mma_sync;
  EXPECT_EQ(names_of(op, hopper),
            "nchwToNhwc nchwToNhwc Memset dgrad-wgmma nchwToNhwc nchwToNhwc nchwToNhwc wgrad-mma nchwToNhwc");
  op.channels_last = true;
  op.ran.instructions = Instructions::mma_sync, op.ran_weights.instructions = Instructions::wgmma;
  EXPECT_EQ(names_of(op, hopper), "dgrad-mma wgrad-wgmma");
}

TEST(WorkedConvolutions, a_recorded_direction_multiplied_transformed_tensors_or_did_not) {
  const Gpu hopper = load_gpu("nvidia-h200-sxm-141gb");
  Convolution op = backward(convolution_of(DType::fp32, false));
  op.batch = 16, op.in_channels = 160, op.out_channels = 160, op.size = 28;
  op.ran.instructions = op.ran_weights.instructions = LibraryKernel::Instructions::simt;
  EXPECT_EQ(names_of(op, hopper).find("transforms"), std::string::npos);
  op.ran_weights = {.transformed = true};
  const std::string names = names_of(op, hopper);
  EXPECT_TRUE(names.ends_with("winograd_nonfused winograd_nonfused gemm_of_transforms winograd_nonfused")) << names;
  op.ran = {.transformed = true};  // fewer than 32 images of so many filters have none
  EXPECT_NE(names_of(op, hopper).find("dgrad"), std::string::npos);
  op.batch = 32;
  EXPECT_EQ(names_of(op, hopper),
            "fft2d_32x32 fft2d_32x32 gemm_of_transforms fft2d_32x32 "
            "winograd_nonfused winograd_nonfused gemm_of_transforms winograd_nonfused");
}

// Before Ampere the same products come in more tiles, in all directions.
TEST(WorkedConvolutions, volta_has_products_of_gathered_panels_in_every_direction) {
  Gpu volta = chip_of_cores();
  volta.architecture = Architecture::volta;
  volta.sm.registers = 65536;
  Convolution op = convolution_of(DType::fp32, false);
  op.size = 60;
  EXPECT_EQ(forms_text(op, Role::forward, volta), R"(
 contraction fp32 cores: 338 x 64, 80 registers shared 6144
  simt fp32 10800x20x90 nt by 16 bytes, tile 32x32x8 stages 2 an SM 7 distinct 0.112754159 gathers forward: taps 9 channels 10 phases 1; flops 38880000 #0:432000/3893760 #1:7200/3893760 -> #2:864000
 contraction fp32 cores: 85 x 128, 122 registers shared 15360
  simt fp32 10800x20x90 nt by 16 bytes, tile 128x32x8 stages 2 an SM 3 distinct 0.112754159 gathers forward: taps 9 channels 10 phases 1; flops 38880000 #0:432000/3916800 #1:7200/979200 -> #2:864000
 contraction fp32 cores: 43 x 128, 254 registers shared 30720
  simt fp32 10800x20x90 nt by 16 bytes, tile 256x64x8 stages 2 distinct 0.112754159 gathers forward: taps 9 channels 10 phases 1; flops 38880000 #0:432000/3962880 #1:7200/990720 -> #2:864000
 contraction fp32 cores: 85 x 256, 122 registers shared 16384
  simt fp32 10800x20x90 nt by 16 bytes, tile 128x128x8 stages 2 an SM 2 distinct 0.112754159 gathers forward: taps 9 channels 10 phases 1; flops 38880000 #0:432000/3916800 #1:7200/3916800 -> #2:864000
 contraction fp32 cores: 85 x 128, 122 registers shared 12288
  simt fp32 10800x20x90 nt by 16 bytes, tile 128x64x8 stages 2 an SM 3 distinct 0.112754159 gathers forward: taps 9 channels 10 phases 1; flops 38880000 #0:432000/3916800 #1:7200/1958400 -> #2:864000
 contraction fp32 cores: 169 x 128, 122 registers shared 12288
  simt fp32 10800x20x90 nt by 16 bytes, tile 64x128x8 stages 2 an SM 3 distinct 0.112754159 gathers forward: taps 9 channels 10 phases 1; flops 38880000 #0:432000/3893760 #1:7200/7787520 -> #2:864000)");
  op.backward = true;
  const auto count = [&](const Convolution& of, Role role) { return convolution_forms(of, role, volta).size(); };
  EXPECT_EQ(count(op, Role::input_gradient), 2u + 3u + 3u) << "own kernels, three of Volta, three of the CUDA cores";
  op.kernel = 7;
  EXPECT_EQ(count(op, Role::weight_gradient), 2u) << "addresses from tables";
}

}  // namespace
}  // namespace ridgeline::worked_convolutions

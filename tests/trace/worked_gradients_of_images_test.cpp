// Backward calls of convolutions and the other operations of images, worked out by hand.
#include <gtest/gtest.h>

#include "tests/support/worked_call.h"

namespace ridgeline::trace {
namespace {

void expect_worked_gradients(const std::vector<WorkedCall>& calls) {
  for (const WorkedCall& call : calls) EXPECT_EQ(operations_of(call), call.expected) << text_of(call);
}

const Numbers kPair{2, 2}, kUnit{1, 1};
const AtenTensor kDy = "fp32[2,12,5,5]#3"_t, kX = "fp32[2,6,10,10]#1"_t, kW = "fp32[12,6,3,3]#2"_t;
const std::string kSizes = "fp32 batch=2 in_channels=6 size=10 out_channels=12 kernel=3 stride=2",
                  kHost = " | convolution_backward convolution_backward",
                  kOfBoth = "convolution backward " + kSizes +
                            ": fp32[2,12,5,5]#3 fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,6,10,10] fp32[12,6,3,3]" +
                            kHost,
                  kOfInput = "convolution backward " + kSizes +
                             " input: fp32[2,12,5,5]#3 fp32[12,6,3,3]#2 > fp32[2,6,10,10]" + kHost,
                  kOfWeight = "convolution backward " + kSizes +
                              " weight: fp32[2,12,5,5]#3 fp32[2,6,10,10]#1 > fp32[12,6,3,3]" + kHost,
                  kOfBias =
                      "reduction sum_cols fp32 rows=12 cols=50: fp32[2,12,5,5]#3 > fp32[12] | python_fixed "
                      "python_fixed";

/// (dy, x, weight, sizes of the bias, stride, padding, dilation, transposed, output padding, groups, mask).
WorkedCall backward_with(Argument mask, Listing expected, std::vector<MeasuredKernel> kernels = {}) {
  return {"convolution_backward",
          {kDy, kX, kW, Numbers{12}, kPair, kUnit, kUnit, 0.0, Numbers{0, 0}, 1.0, std::move(mask)},
          std::move(expected),
          {},
          std::move(kernels)};
}

TEST(WorkedGradientsOfImages, TheMaskSaysWhichAreAskedFor) {
  expect_worked_gradients({
      backward_with(Numbers{1, 1, 1}, {kOfBoth, kOfBias}),
      backward_with(Numbers{1, 1, 0}, {kOfBoth}),
      backward_with(Numbers{1, 0, 0}, {kOfInput}),
      backward_with(Numbers{0, 1, 0}, {kOfWeight}),
      backward_with(Numbers{0, 0, 0}, kNothing),
      backward_with(Numbers{}, {kOfBoth}),
      backward_with(Numbers{0}, {kOfWeight}),
      // Profilers that leave the mask out: the bias has a gradient too.
      backward_with(kLeftOut, {kOfBoth, kOfBias}),
  });
}

TEST(WorkedGradientsOfImages, WithoutAMaskTheKernelsSay) {
  const MeasuredKernel wgrad = measured("sm80_xmma_wgrad_implicit_gemm"), cutlass = measured("cutlass_Wgrad_64x64"),
                       dgrad = measured("sm80_xmma_dgrad_implicit_gemm"), memset = measured("Memset (Device)"),
                       memcpy = measured("Memcpy DtoD");
  expect_worked_gradients({
      backward_with(kLeftOut, {kOfWeight, kOfBias}, {wgrad}),
      backward_with(kLeftOut, {kOfWeight, kOfBias}, {cutlass, memset}),
      backward_with(kLeftOut, {kOfWeight, kOfBias}, {memcpy, cutlass, wgrad}),
      backward_with(kLeftOut, {kOfBoth, kOfBias}, {wgrad, dgrad}),
      backward_with(kLeftOut, {kOfBoth, kOfBias}, {dgrad, wgrad}),
      backward_with(kLeftOut, {kOfBoth, kOfBias}, {dgrad}),
      backward_with(kLeftOut, {kOfBoth, kOfBias}, {memset}),
      backward_with(Numbers{1, 1, 0}, {kOfBoth}, {wgrad}),
  });
}

TEST(WorkedGradientsOfImages, OfChannelsThatLieInnermostTheBiasIsASumOverRows) {
  expect_worked_gradients({
      {"convolution_backward",
       {"bf16[2,12,5,5](300,1,60,12)#3"_t, "bf16[2,6,10,10](600,1,60,6)"_t, "bf16[12,6,3,3]"_t, Numbers{12}, kPair},
       {"convolution backward channels_last bf16 batch=2 in_channels=6 size=10 out_channels=12 kernel=3 stride=2: "
        "bf16[2,12,5,5](300,1,60,12)#3 bf16[2,6,10,10](600,1,60,6) bf16[12,6,3,3] > bf16[2,6,10,10](600,1,60,6) "
        "bf16[12,6,3,3]" +
            kHost,
        "reduction sum_rows bf16 rows=50 cols=12: bf16[2,12,5,5](300,1,60,12)#3 > bf16[12] | python_fixed "
        "python_fixed"}},
  });
}

TEST(WorkedGradientsOfImages, WithoutTensorsThereAreNone) {
  expect_worked_gradients({
      {"convolution_backward", {kLeftOut, kX, kW, Numbers{12}, kPair}, kNotUnderstood},
      {"convolution_backward", {kDy, kLeftOut, kW, Numbers{12}, kPair}, kNotUnderstood},
      {"convolution_backward", {kDy, kX, kLeftOut, Numbers{12}, kPair}, kNotUnderstood},
      {"convolution_backward", {kDy, kX, kW, Numbers{12}, Numbers{0, 0}}, kNotUnderstood},
  });
}

TEST(WorkedGradientsOfImages, GroupsAndTransposedOnes) {
  expect_worked_gradients({
      {"convolution_backward",
       {kDy, kX, "fp32[12,2,3,3]"_t, Numbers{12}, kPair, kUnit, kUnit, 0.0, Numbers{0, 0}, 3.0, Numbers{1, 0, 0}},
       {"convolution backward " + kSizes + " groups=3 input: fp32[2,12,5,5]#3 fp32[12,2,3,3] > fp32[2,6,10,10]" +
        kHost}},
      {"convolution_backward",
       {kX, kDy, kW, Numbers{6}, kPair, kUnit, kUnit, 1.0, Numbers{0, 0}, 1.0, Numbers{0, 1, 0}},
       {"convolution backward transposed " + kSizes + " weight: fp32[2,6,10,10]#1 fp32[2,12,5,5]#3 > fp32[12,6,3,3]" +
        kHost}},
  });
}

/// (x, dy, weight, padding, stride, dilation, groups, …, mask) of PyTorch up to 1.10.
TEST(WorkedGradientsOfImages, CudnnsOwnCalls) {
  expect_worked_gradients({
      {"cudnn_convolution_backward",
       {kX, kDy, kW, kUnit, kPair, kUnit, 1.0, 0.0, 0.0, 1.0, Numbers{0, 1}},
       {kOfWeight}},
      {"cudnn_convolution_backward", {kX, kDy, kW, kUnit, kPair, kUnit, 1.0, 0.0, 0.0, 1.0, Numbers{1, 0}}, {kOfInput}},
      {"cudnn_convolution_backward", {kX, kDy, kW, kUnit, kPair, kUnit, 1.0, 0.0, 0.0, 1.0}, {kOfBoth}},
      // The last list of a call that says no groups is a dilation.
      {"cudnn_convolution_backward", {kX, kDy, kW, kUnit, kPair, Numbers{0, 1}}, {kOfBoth}},
      {"cudnn_convolution_backward", {kX, kDy, kW, kUnit, kPair}, {kOfBoth}},
      {"cudnn_convolution_backward", {kX, kDy, kW}, {kOfBoth}},
      {"cudnn_convolution_backward", {kLeftOut, kDy, kW, kUnit, kPair}, kNotUnderstood},
      {"cudnn_convolution_backward",
       {kX, kDy, "fp32[12,2,3,3]"_t, kUnit, kPair, kUnit, 3.0, 0.0, 0.0, 1.0, Numbers{1, 0}},
       {"convolution backward " + kSizes + " groups=3 input: fp32[2,12,5,5]#3 fp32[12,2,3,3] > fp32[2,6,10,10]" +
        kHost}},
      // (x, dy, weight, padding, output padding, stride, dilation, groups, …, mask).
      {"cudnn_convolution_transpose_backward",
       {kDy, kX, kW, kUnit, Numbers{0, 0}, kPair, kUnit, 1.0, 0.0, 0.0, 1.0, Numbers{0, 1}},
       {"convolution backward transposed " + kSizes + " weight: fp32[2,6,10,10]#1 fp32[2,12,5,5]#3 > fp32[12,6,3,3]" +
        kHost}},
      {"cudnn_convolution_transpose_backward",
       {kDy, kX, kW, kUnit, Numbers{0, 0}, kPair, kUnit, 1.0, 0.0, 0.0, 1.0, Numbers{1, 0}},
       {"convolution backward transposed " + kSizes + " input: fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,5,5]" +
        kHost}},
      // (sizes of what is made, dy, x or weight, padding, stride, dilation, groups, …).
      {"cudnn_convolution_backward_weight", {Numbers{12, 6, 3, 3}, kDy, kX, kUnit, kPair, kUnit, 1.0}, {kOfWeight}},
      {"cudnn_convolution_backward_input", {Numbers{2, 6, 10, 10}, kDy, kW, kUnit, kPair, kUnit, 1.0}, {kOfInput}},
      {"cudnn_convolution_backward_input",
       {Numbers{2, 6, 10, 10}, kDy, "fp32[12,2,3,3]"_t, kUnit, kPair, kUnit, 3.0},
       {"convolution backward " + kSizes + " groups=3 input: fp32[2,12,5,5]#3 fp32[12,2,3,3] > fp32[2,6,10,10]" +
        kHost}},
      {"cudnn_convolution_backward_weight", {Numbers{}, kDy, kX, kUnit, kPair}, kNotUnderstood},
      {"cudnn_convolution_backward_weight", {kLeftOut, kDy, kX, kUnit, kPair}, kNotUnderstood},
      {"cudnn_convolution_backward_weight", {Numbers{12, 6, 3, 3}, kLeftOut, kX, kUnit, kPair}, kNotUnderstood},
      {"cudnn_convolution_backward_weight", {Numbers{12, 6, 3, 3}, kDy, kLeftOut, kUnit, kPair}, kNotUnderstood},
  });
}

TEST(WorkedGradientsOfImages, OfUnfoldedAndDepthwiseOnes) {
  const Numbers kernel{3, 3};
  expect_worked_gradients({
      // (dy, x, weight, kernel, stride, padding, …, mask).
      {"_slow_conv2d_backward", {kDy, kX, kW, kernel, kPair, kUnit, Numbers{1, 0, 0}}, {kOfInput}},
      {"_slow_conv2d_backward", {kDy, kX, kW, kernel, kPair, kUnit, Numbers{0, 1, 1}}, {kOfWeight, kOfBias}},
      {"_slow_conv2d_backward", {kDy, kX, kW, kernel, kPair, Numbers{0, 1}}, {kOfBoth}},
      {"_slow_conv2d_backward", {kDy, kX, kW, kernel, kPair, Numbers{0, 1}, kLeftOut, kLeftOut}, {kOfBoth}},
      {"_conv_depthwise2d_backward",
       {"fp32[2,6,5,5]#3"_t, kX, "fp32[6,1,3,3]"_t, kernel, kPair, kUnit, kUnit, Numbers{1, 0}},
       {"convolution backward fp32 batch=2 in_channels=6 size=10 out_channels=6 kernel=3 stride=2 groups=6 input: "
        "fp32[2,6,5,5]#3 fp32[6,1,3,3] > fp32[2,6,10,10]" +
        kHost}},
      {"_conv_depthwise2d_backward",
       {"fp32[2,6,5,5]#3"_t, kX, "fp32[6,1,3,3]"_t, kernel, kPair, kUnit, Numbers{1, 0}},
       {"convolution backward fp32 batch=2 in_channels=6 size=10 out_channels=6 kernel=3 stride=2 groups=6: "
        "fp32[2,6,5,5]#3 "
        "fp32[2,6,10,10]#1 fp32[6,1,3,3] > fp32[2,6,10,10] fp32[6,1,3,3]" +
        kHost}},
      {"_conv_depthwise2d_backward", {kDy, kLeftOut, kW, kernel, kPair}, kNotUnderstood},
      {"_conv_depthwise2d_backward", {kDy, "fp32[6,10]"_t, kW, kernel, kPair}, kNotUnderstood},
      {"_conv_depthwise2d_backward",
       {"fp32[2,3,16]"_t, "fp32[2,3,16]"_t, "fp32[3,1,3]"_t, Numbers{3}, Numbers{1}},
       {"convolution backward fp32 batch=2 in_channels=3 size=1 out_channels=3 kernel=1 stride=1 groups=3 width=16 "
        "kernel_width=3: fp32[2,3,16] "
        "fp32[2,3,16] fp32[3,1,3] > fp32[2,3,16] fp32[3,1,3]" +
        kHost}},
  });
}

TEST(WorkedGradientsOfImages, Normalisation) {
  expect_worked_gradients({
      {"native_batch_norm",
       {"bf16[2,6,4,9]#1"_t},
       {"image batch_norm bf16 batch=2 channels=6 size=4 width=9: bf16[2,6,4,9]#1 > bf16[2,6,4,9] | batch_norm "
        "batch_norm"}},
      {"cudnn_batch_norm",
       {"bf16[2,6,4,4](96,1,24,6)"_t},
       {"image batch_norm channels_last bf16 batch=2 channels=6 size=4: bf16[2,6,4,4](96,1,24,6) > bf16[2,6,4,4]#2 | "
        "batch_norm batch_norm"},
       {"bf16[2,6,4,4]#2"_t}},
      {"native_batch_norm",
       {"fp32[7,6]"_t},
       {"image batch_norm fp32 batch=7 channels=6 size=1: fp32[7,6] > fp32[7,6] | batch_norm batch_norm"}},
      {"native_batch_norm",
       {"fp32[7,6,16]"_t},
       {"image batch_norm fp32 batch=7 channels=6 size=1 width=16: fp32[7,6,16] > fp32[7,6,16] | batch_norm "
        "batch_norm"}},
      {"native_batch_norm", {"fp32[7]"_t}, kNotUnderstood},
      {"native_batch_norm", {"fp32[0,6]"_t}, kNotUnderstood},
      {"native_batch_norm", {kLeftOut}, kNotUnderstood},
      {"native_batch_norm",
       {"fp32[1,1]"_t},
       {"image batch_norm fp32 batch=1 channels=1 size=1: fp32[1,1] > fp32[1,1] | batch_norm batch_norm"}},
      // cuDNN's takes the input first, PyTorch's own the gradient.
      {"cudnn_batch_norm_backward",
       {"fp32[2,6,4,4]#1"_t, "fp32[2,6,4,4]#3"_t},
       {"image batch_norm backward fp32 batch=2 channels=6 size=4: fp32[2,6,4,4]#3 fp32[2,6,4,4]#1 > fp32[2,6,4,4] | "
        "batch_norm_backward batch_norm_backward"}},
      {"native_batch_norm_backward",
       {"fp32[2,6,4,4]#3"_t, "fp32[2,6,4,4]#1"_t},
       {"image batch_norm backward fp32 batch=2 channels=6 size=4: fp32[2,6,4,4]#3 fp32[2,6,4,4]#1 > fp32[2,6,4,4] | "
        "batch_norm_backward batch_norm_backward"}},
      {"native_batch_norm_backward", {kLeftOut, "fp32[2,6,4,4]"_t}, kNotUnderstood},
      {"native_batch_norm_backward", {"fp32[2,6,4,4]"_t, kLeftOut}, kNotUnderstood},
  });
}

TEST(WorkedGradientsOfImages, PoolingAndUpsampling) {
  expect_worked_gradients({
      {"max_pool2d_with_indices",
       {"fp32[2,6,8,18]#1"_t},
       {"image max_pool2d fp32 batch=2 channels=6 size=8 width=18 window=2 stride=2 out_size=4 out_width=9: "
        "fp32[2,6,8,18]#1 > fp32[2,6,4,9] | pointwise pointwise"}},
      {"max_pool2d_with_indices",
       {"fp32[2,6,1,9]"_t},
       {"image max_pool2d fp32 batch=2 channels=6 size=1 width=9 window=2 stride=2 out_size=1 out_width=4: "
        "fp32[2,6,1,9] > fp32[2,6,1,4] | pointwise pointwise"}},
      {"max_pool2d_with_indices", {"fp32[6,8,18]"_t}, kNotUnderstood},
      {"max_pool2d_with_indices", {kLeftOut}, kNotUnderstood},
      {"max_pool2d_with_indices_backward",
       {"fp32[2,6,4,9]#3"_t, "fp32[2,6,8,18]#1"_t},
       {"image max_pool2d backward fp32 batch=2 channels=6 size=8 width=18 window=2 stride=2 out_size=4 out_width=9: "
        "fp32[2,6,4,9]#3 fp32[2,6,8,18]#1 > fp32[2,6,8,18] | pointwise_backward pointwise_backward"}},
      {"max_pool2d_with_indices_backward", {kLeftOut, "fp32[2,6,8,18]"_t}, kNotUnderstood},
      {"max_pool2d_with_indices_backward", {"fp32[2,6,4,9]"_t, kLeftOut}, kNotUnderstood},
      {"max_pool2d_with_indices_backward", {"fp32[6,4,9]"_t, "fp32[6,8,18]"_t}, kNotUnderstood},
      {"upsample_nearest2d",
       {"bf16[2,6,4,4](96,1,24,6)#1"_t, Numbers{8, 18}},
       {"resampling nearest channels_last bf16 batch=2 channels=6 inputs=16 outputs=144 taps=1: "
        "bf16[2,6,4,4](96,1,24,6)#1 > bf16[2,6,8,18]"}},
      {"upsample_nearest2d",
       {"bf16[2,6,4,4]#1"_t, kLeftOut},
       {"image upsample_nearest2d channels_last bf16 batch=2 channels=6 size=8: bf16[2,6,4,4]#1 > "
        "bf16[2,6,8,8](384,1,48,6)#2 | pointwise pointwise"},
       {"bf16[2,6,8,8](384,1,48,6)#2"_t}},
      {"upsample_nearest2d", {"bf16[2,6,4,4]"_t, kLeftOut}, kNotUnderstood},
      {"upsample_nearest2d", {"bf16[2,6,4,4]"_t, Numbers{8}}, kNotUnderstood},
      {"upsample_nearest2d", {"bf16[6,4,4]"_t, Numbers{8, 8}}, kNotUnderstood},
      {"upsample_nearest2d", {kLeftOut, Numbers{8, 8}}, kNotUnderstood},
      {"upsample_nearest2d_backward",
       {"fp32[2,6,8,18]#3"_t, Numbers{8, 18}, Numbers{2, 6, 4, 9}},
       {"resampling nearest backward fp32 batch=2 channels=6 inputs=36 outputs=144 taps=1: fp32[2,6,8,18]#3 > "
        "fp32[2,6,4,9]"}},
      {"upsample_nearest2d_backward",
       {"fp32[2,6,8,18]#3"_t},
       {"resampling nearest backward fp32 batch=2 channels=6 inputs=36 outputs=144 taps=1: fp32[2,6,8,18]#3 > "
        "fp32[2,6,4,9]#4"},
       {"fp32[2,6,4,9]#4"_t}},
      {"upsample_nearest2d_backward", {"fp32[2,6,8,18]"_t, Numbers{8, 18}}, kNotUnderstood},
      {"upsample_nearest2d_backward", {"fp32[2,6,8,18]"_t, Numbers{8, 18}, Numbers{2, 6, 4}}, kNotUnderstood},
      {"upsample_nearest2d_backward", {"fp32[6,8,18]"_t, Numbers{8, 18}, Numbers{1, 6, 4, 9}}, kNotUnderstood},
      {"upsample_nearest2d_backward", {kLeftOut, Numbers{8, 18}, Numbers{1, 6, 4, 9}}, kNotUnderstood},
  });
}

}  // namespace
}  // namespace ridgeline::trace

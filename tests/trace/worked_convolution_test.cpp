// Convolutions and other operations of images, worked out by hand: sides, strides, groups and channels from what a call
// says, and which gradients it asks for. Names of kernels are cuDNN's.
#include <gtest/gtest.h>

#include "tests/support/worked_call.h"

namespace ridgeline::trace {
namespace {

void expect_worked_images(const std::vector<WorkedCall>& calls, const MapContext& context = {}) {
  for (const WorkedCall& call : calls) EXPECT_EQ(operations_of(call, context), call.expected) << text_of(call);
}

const Numbers kTwo{2, 2}, kOne{1, 1}, kThree{3, 3};
const AtenTensor kPicture = "fp32[2,6,10,10]#1"_t, kFilters = "fp32[12,6,3,3]#2"_t;

/// "convolution fp32 batch=2 …: x filters > y".
std::string of_plain(std::string_view type, std::string_view stride, std::string_view rest,
                     std::string_view kernels = "") {
  return fmt::format(
      "convolution {} batch=2 in_channels=6 size=10 out_channels=12 kernel=3 stride={}{}: {} | "
      "convolution convolution_backward",
      type, stride, kernels, rest);
}

TEST(WorkedConvolution, AForwardCallSaysItsStrideAndItsResult) {
  expect_worked_images({
      {"convolution",
       {kPicture, kFilters, kLeftOut, kTwo, kOne, kOne, 0.0, Numbers{0, 0}, 1.0},
       {of_plain("fp32", "2", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,5,5]")}},
      // Three into ten goes four times, the last of them over the edge.
      {"convolution",
       {kPicture, kFilters, kLeftOut, kThree},
       {of_plain("fp32", "3", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,4,4]")}},
      // The recorded result counts, whatever its sides.
      {"convolution",
       {kPicture, kFilters, kLeftOut, kTwo},
       {of_plain("fp32", "2 out_size=4 out_width=4", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,4,4]#3")},
       {"fp32[2,12,4,4]#3"_t}},
      // Without a stride: as often as the sides say, rounded.
      {"convolution",
       {kPicture, kFilters},
       {of_plain("fp32", "3", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,4,4]#3")},
       {"fp32[2,12,4,4]#3"_t}},
      {"convolution",
       {kPicture, kFilters, kLeftOut, Numbers{}},
       {of_plain("fp32", "3 out_size=3 out_width=3", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,3,3]#3")},
       {"fp32[2,12,3,3]#3"_t}},
      {"convolution",
       {kPicture, kFilters},
       {of_plain("fp32", "1 out_size=12 out_width=12", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,12,12]#3")},
       {"fp32[2,12,12,12]#3"_t}},
      {"convolution",
       {kPicture, kFilters},
       {of_plain("fp32", "1", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,10,10]")}},
      {"convolution", {kPicture, kFilters}, kNotUnderstood, {"fp32[2,12,0,0]"_t}},
      {"convolution",
       {kPicture, kFilters},
       {of_plain("fp32", "1", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,5]")},
       {"fp32[2,12,5]"_t}},
      {"convolution", {kPicture, kLeftOut, kLeftOut, kTwo}, kNotUnderstood},
      {"convolution", {kLeftOut, kFilters, kLeftOut, kTwo}, kNotUnderstood},
      {"convolution", {"fp32[6,10]"_t, "fp32[12,6]"_t, kLeftOut, kOne}, kNotUnderstood},
      {"convolution", {kPicture, "fp32[12,6,3]"_t, kLeftOut, kOne}, kNotUnderstood},
  });
}

TEST(WorkedConvolution, ABiasIsAddedByAKernelOfItsOwnOverEveryPixel) {
  expect_worked_images({
      {"convolution",
       {kPicture, kFilters, "bf16[12]#5"_t, kTwo},
       {of_plain("fp32", "2", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,5,5]"),
        "add_in_place 120x5 fp32,bf16>fp32 broadcast: fp32[2,12,5,5] bf16[12,1,1]#5 > fp32[2,12,5,5] | python_fixed "
        "pointwise_backward"}},
      {"convolution",
       {kPicture, kFilters, "fp32[]"_t, kTwo},
       {of_plain("fp32", "2", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,5,5]")}},
      {"thnn_conv2d_forward",
       {kPicture, kFilters, kThree, "fp32[12](1)#5"_t, kTwo, kOne},
       {of_plain("fp32", "2", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,5,5]"),
        "add_in_place 120x5 fp32,fp32>fp32 broadcast: fp32[2,12,5,5] fp32[12,1,1]#5 > fp32[2,12,5,5] | python_fixed "
        "pointwise_backward"}},
  });
}

TEST(WorkedConvolution, LayoutsAndTypes) {
  MapContext tf32;  // cuDNN's switch, whatever that of matmuls says
  tf32.cudnn_tf32 = true;
  const std::string written = "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,10,10]";
  expect_worked_images({{"convolution", {kPicture, kFilters, kLeftOut, kOne}, {of_plain("tf32", "1", written)}}}, tf32);
  expect_worked_images({{"convolution",
                         {"bf16[2,6,10,10]"_t, "bf16[12,6,3,3]"_t, kLeftOut, kOne},
                         {of_plain("bf16", "1", "bf16[2,6,10,10] bf16[12,6,3,3] > bf16[2,12,10,10]")}}},
                       tf32);
  // Either tensor says that channels are innermost.
  expect_worked_images({
      {"convolution",
       {"fp32[2,6,10,10](600,1,60,6)"_t, "fp32[12,6,3,3]"_t, kLeftOut, kOne},
       {of_plain("channels_last fp32", "1", "fp32[2,6,10,10](600,1,60,6) fp32[12,6,3,3] > fp32[2,12,10,10]")}},
      {"convolution",
       {"fp32[2,6,10,10]"_t, "fp32[12,6,3,3](54,1,18,6)"_t, kLeftOut, kOne},
       {of_plain("channels_last fp32", "1", "fp32[2,6,10,10] fp32[12,6,3,3](54,1,18,6) > fp32[2,12,10,10]")}},
      // … but not if they lie in another order, or if there is one of them.
      {"convolution",
       {"fp32[2,6,10,10](600,1,6,60)"_t, "fp32[12,6,3,3]"_t, kLeftOut, kOne},
       {of_plain("fp32", "1", "fp32[2,6,10,10](600,1,6,60) fp32[12,6,3,3] > fp32[2,12,10,10]")}},
      {"convolution",
       {"fp32[2,1,10,10](100,1,10,1)"_t, "fp32[12,1,3,3]"_t, kLeftOut, kOne},
       {"convolution fp32 batch=2 in_channels=1 size=10 out_channels=12 kernel=3 stride=1: fp32[2,1,10,10](100,1,10,1) "
        "fp32[12,1,3,3] > fp32[2,12,10,10] | convolution convolution_backward"}},
  });
}

// Signals are images of one row, solids images of all rows of their planes.
TEST(WorkedConvolution, ImagesThatAreNotSquare) {
  expect_worked_images({
      {"convolution",
       {"fp32[2,6,4,25]"_t, "fp32[12,6,2,8]"_t, kLeftOut, Numbers{3, 1}},
       {"convolution fp32 batch=2 in_channels=6 size=4 out_channels=12 kernel=2 stride=3 width=25 kernel_width=8 "
        "stride_width=1: fp32[2,6,4,25] fp32[12,6,2,8] > fp32[2,12,2,26] | convolution convolution_backward"}},
      {"convolution",
       {"fp32[2,6,100]"_t, "fp32[12,6,3]"_t, kLeftOut, Numbers{2}},
       {"convolution fp32 batch=2 in_channels=6 size=1 out_channels=12 kernel=1 stride=1 width=100 kernel_width=3 "
        "stride_width=2: fp32[2,6,100] fp32[12,6,3] > fp32[2,12,50] | convolution convolution_backward"}},
      {"convolution",
       {"fp32[2,6,4,5,20]"_t, "fp32[12,6,3,3,3]"_t, kLeftOut, Numbers{2, 2, 2}},
       {"convolution fp32 batch=2 in_channels=6 size=20 out_channels=12 kernel=9 stride=4 kernel_width=3 "
        "stride_width=2 "
        "out_size=6 out_width=10: fp32[2,6,4,5,20] fp32[12,6,3,3,3] > fp32[2,12,2,3,10] | convolution "
        "convolution_backward"}},
  });
}

TEST(WorkedConvolution, GroupsAndDepthwiseFilters) {
  expect_worked_images({
      {"convolution",
       {kPicture, "fp32[12,2,3,3]"_t, kLeftOut, kOne, kOne, kOne, 0.0, Numbers{0, 0}, 3.0},
       {"convolution fp32 batch=2 in_channels=6 size=10 out_channels=12 kernel=3 stride=1 groups=3: fp32[2,6,10,10]#1 "
        "fp32[12,2,3,3] > fp32[2,12,10,10] | convolution convolution_backward"}},
      // No groups are one.
      {"convolution",
       {kPicture, kFilters, kLeftOut, kOne, kOne, kOne, 0.0, Numbers{0, 0}, 0.0},
       {of_plain("fp32", "1", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,10,10]")}},
      {"cudnn_convolution",
       {kPicture, "fp32[12,2,3,3]"_t, kOne, kOne, kOne, 3.0},
       {"convolution fp32 batch=2 in_channels=6 size=10 out_channels=12 kernel=3 stride=1 groups=3: fp32[2,6,10,10]#1 "
        "fp32[12,2,3,3] > fp32[2,12,10,10] | convolution convolution_backward"}},
      {"_conv_depthwise2d",
       {kPicture, "fp32[12,1,3,3]"_t, kThree, kLeftOut, kTwo, kOne},
       {"convolution fp32 batch=2 in_channels=6 size=10 out_channels=12 kernel=3 stride=2 groups=6: fp32[2,6,10,10]#1 "
        "fp32[12,1,3,3] > fp32[2,12,5,5] | convolution convolution_backward"}},
      {"_conv_depthwise2d",
       {kPicture, "fp32[6,1,3,3]"_t, kThree, "fp32[6]#4"_t, kTwo, kOne},
       // PyTorch's kernel adds the bias itself.
       {"convolution fp32 batch=2 in_channels=6 size=10 out_channels=6 kernel=3 stride=2 groups=6: fp32[2,6,10,10]#1 "
        "fp32[6,1,3,3] > fp32[2,6,5,5] | convolution convolution_backward"}},
      {"_conv_depthwise2d", {"fp32[6,10]"_t, "fp32[6,1]"_t, kThree, kLeftOut, kTwo}, kNotUnderstood},
      {"_conv_depthwise2d", {kLeftOut, "fp32[6,1,3,3]"_t, kThree, kLeftOut, kTwo}, kNotUnderstood},
      {"_conv_depthwise2d",
       {"fp32[2,3,16]"_t, "fp32[3,1,3]"_t, Numbers{3}, kLeftOut, Numbers{1}},
       {"convolution fp32 batch=2 in_channels=3 size=1 out_channels=3 kernel=1 stride=1 groups=3 width=16 "
        "kernel_width=3: fp32[2,3,16] fp32[3,1,3] > fp32[2,3,16] | convolution convolution_backward"}},
  });
}

// A transposed one is seen from its larger image: what it makes is what a plain one would read.
TEST(WorkedConvolution, TransposedOnesAreMirrored) {
  expect_worked_images({
      {"convolution",
       {"fp32[2,12,5,5]"_t, "fp32[12,6,4,4]"_t, kLeftOut, kTwo, kOne, kOne, 1.0, Numbers{0, 0}, 1.0},
       {"convolution transposed fp32 batch=2 in_channels=6 size=10 out_channels=12 kernel=4 stride=2 out_size=5 "
        "out_width=5: fp32[2,12,5,5] "
        "fp32[12,6,4,4] > fp32[2,6,10,10] | convolution convolution_backward"}},
      // Its groups stay in one image; its result has the channels of all.
      {"convolution",
       {"fp32[2,12,5,5]"_t, "fp32[12,6,4,4]"_t, kLeftOut, kTwo, kOne, kOne, 1.0, Numbers{0, 0}, 3.0},
       {"convolution transposed fp32 batch=2 in_channels=18 size=10 out_channels=12 kernel=4 stride=2 groups=3 "
        "out_size=5 out_width=5: fp32[2,12,5,5] fp32[12,6,4,4] > fp32[2,18,10,10] | convolution convolution_backward"}},
      {"cudnn_convolution_transpose",
       {"fp32[2,12,5,5]"_t, "fp32[12,6,4,4]"_t, kOne, Numbers{0, 0}, kThree, kOne, 1.0},
       {"convolution transposed fp32 batch=2 in_channels=6 size=15 out_channels=12 kernel=4 stride=3 out_size=5 "
        "out_width=5: fp32[2,12,5,5] "
        "fp32[12,6,4,4] > fp32[2,6,15,15] | convolution convolution_backward"}},
      // Without a stride, from the result to the image.
      {"convolution",
       {"fp32[2,12,5,5]"_t, "fp32[12,6,4,4]"_t, kLeftOut, kLeftOut, kOne, kOne, 1.0},
       {"convolution transposed fp32 batch=2 in_channels=6 size=14 out_channels=12 kernel=4 stride=3: fp32[2,12,5,5] "
        "fp32[12,6,4,4] > fp32[2,6,14,14] | convolution convolution_backward"},
       {"fp32[2,6,14,14]"_t}},
  });
}

// Before PyTorch 1.7 the bias stood behind the filters.
TEST(WorkedConvolution, CudnnTookABiasOnce) {
  const std::string expected =
      of_plain("fp32", "2 out_size=3 out_width=3", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,3,3]");
  expect_worked_images({
      {"cudnn_convolution", {kPicture, kFilters, kOne, kTwo, kThree, 1.0}, {expected}},
      {"cudnn_convolution", {kPicture, kFilters, kLeftOut, kOne, kTwo, kThree, 1.0}, {expected}},
      {"cudnn_convolution", {kPicture, kFilters, "fp32[12]"_t, kOne, kTwo, kThree, 1.0}, {expected}},
      {"cudnn_convolution",
       {kPicture, "fp32[12,2,3,3]"_t, "fp32[12]"_t, kOne, kTwo, kThree, 3.0},
       {"convolution fp32 batch=2 in_channels=6 size=10 out_channels=12 kernel=3 stride=2 groups=3 out_size=3 "
        "out_width=3: fp32[2,6,10,10]#1 fp32[12,2,3,3] > fp32[2,12,3,3] | convolution convolution_backward"}},
      {"cudnn_convolution",
       {kPicture, kFilters},
       {of_plain("fp32", "2", "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,5,5]")},
       {"fp32[2,12,5,5]"_t}},
  });
}

TEST(WorkedConvolution, WhatIsLargerThanAnyDeviceHoldsIsNotUnderstood) {
  const auto stride = [](double given) {
    return operations_of({"convolution", {kPicture, kFilters, kLeftOut, Numbers{given, given}}, {}}) == kNotUnderstood;
  };
  EXPECT_FALSE(stride(16384));  // 2^14
  EXPECT_TRUE(stride(16385));
  EXPECT_FALSE(stride(1));
  EXPECT_TRUE(stride(0));
  const auto groups = [](double given) {
    return operations_of({"convolution",
                          {"fp32[1,4,10,10]"_t, "fp32[2097152,1,1,1]"_t, kLeftOut, kOne, kOne, kOne, 0.0, kOne, given},
                          {}}) == kNotUnderstood;
  };
  EXPECT_FALSE(groups(1048576));  // 2^20
  EXPECT_TRUE(groups(1048577));
  EXPECT_TRUE(groups(2097152));
}

TEST(WorkedConvolution, TheRecordedKernelIsNamedWhereTheLibraryIsTheSame) {
  MapContext same;
  same.same_library = true;
  const std::vector<MeasuredKernel> kernels{
      {"sm90_xmma_fprop_implicit_gemm_tilesize128x64x32_warpgroupsize1x1x1", 2e-6},
      {"cutlass_tensorop_s16816wgrad_optimized_bf16_256x64", 3e-6}};
  const std::string written = "fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,12,10,10]";
  const WorkedCall forward{"convolution", {kPicture, kFilters, kLeftOut, kOne}, {}, {}, kernels};
  EXPECT_EQ(operations_of(forward), Listing{of_plain("fp32", "1", written)});
  EXPECT_EQ(operations_of(forward, same), Listing{of_plain("fp32", "1", written, " wgmma")});
  const auto backward = [&](double input, double weight) {
    return operations_of({"convolution_backward",
                          {"fp32[2,12,10,10]"_t, kPicture, kFilters, kLeftOut, kOne, kOne, kOne, 0.0, Numbers{0, 0},
                           1.0, Numbers{input, weight, 0}},
                          {},
                          {},
                          kernels},
                         same);
  };
  const std::string sizes = "fp32 batch=2 in_channels=6 size=10 out_channels=12 kernel=3 stride=1";
  EXPECT_EQ(backward(1, 1),
            Listing{"convolution backward " + sizes +
                    " wgmma mma_sync: fp32[2,12,10,10] fp32[2,6,10,10]#1 fp32[12,6,3,3]#2 > fp32[2,6,10,10] "
                    "fp32[12,6,3,3] | convolution_backward convolution_backward"});
  EXPECT_EQ(backward(1, 0), Listing{"convolution backward " + sizes +
                                    " wgmma mma_sync input: fp32[2,12,10,10] fp32[12,6,3,3]#2 > fp32[2,6,10,10] | "
                                    "convolution_backward convolution_backward"});
  EXPECT_EQ(backward(0, 1), Listing{"convolution backward " + sizes +
                                    " wgmma mma_sync weight: fp32[2,12,10,10] fp32[2,6,10,10]#1 > fp32[12,6,3,3] | "
                                    "convolution_backward convolution_backward"});
  // Our own timelines, which tell what is written, name kernels for the reader alone.
  AtenCall own;
  own.name = "aten::convolution";
  own.inputs = forward.inputs;
  own.kernels = kernels;
  own.writes = {{1, 40, 40}};
  EXPECT_EQ(text_of(map_aten(own, same)->front()), of_plain("fp32", "1", written));
}

}  // namespace
}  // namespace ridgeline::trace

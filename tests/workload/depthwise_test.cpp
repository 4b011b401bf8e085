// The library of a depthwise convolution, against PyTorch's conditions (ConvParams::use_cudnn_depthwise).
#include "sim/workload/depthwise.h"

#include <gtest/gtest.h>

#include "sim/workload/convolution_bounds.h"

namespace ridgeline {
namespace {

Convolution depthwise_of(DType type, std::int64_t channels, std::int64_t kernel, std::int64_t stride = 1) {
  Convolution op{.type = type, .batch = 8, .in_channels = channels, .size = 28, .out_channels = channels};
  op.groups = channels, op.kernel = kernel, op.stride = stride;
  return op;
}

TEST(Depthwise, NchwIsPyTorchsUnlessItsTableGivesFp16ToCudnn) {
  for (const std::int64_t kernel : {1, 3, 5, 7, 9})
    for (const DType type : {DType::fp32, DType::tf32, DType::bf16})
      EXPECT_TRUE(runs_pytorch_depthwise(depthwise_of(type, 64, kernel)));
  for (const std::int64_t kernel : {1, 3, 5})
    EXPECT_FALSE(runs_pytorch_depthwise(depthwise_of(DType::fp16, 64, kernel)));
  for (const std::int64_t kernel : {2, 7, 9})
    EXPECT_TRUE(runs_pytorch_depthwise(depthwise_of(DType::fp16, 64, kernel)));
  EXPECT_TRUE(runs_pytorch_depthwise(depthwise_of(DType::fp16, 31, 3))) << "fewer than 32 channels";
  EXPECT_TRUE(runs_pytorch_depthwise(depthwise_of(DType::fp16, 64, 3, 3))) << "a stride of three";
  EXPECT_FALSE(runs_pytorch_depthwise(depthwise_of(DType::fp16, 256, 3, 2))) << "256 channels of 28 columns";
  EXPECT_TRUE(runs_pytorch_depthwise(depthwise_of(DType::fp16, 255, 3, 2)));
  Convolution narrow = depthwise_of(DType::fp16, 64, 3);
  narrow.width = 6;
  EXPECT_TRUE(runs_pytorch_depthwise(narrow)) << "fewer than seven columns";
}

TEST(Depthwise, SignalsOfStrideOneInFp16AreCudnns) {
  Convolution signal = depthwise_of(DType::fp16, 64, 1);
  signal.size = 1, signal.width = 1000, signal.kernel_width = 31;
  EXPECT_FALSE(runs_pytorch_depthwise(signal));
  signal.stride_width = 2;
  EXPECT_TRUE(runs_pytorch_depthwise(signal));
  signal.type = DType::bf16, signal.stride_width = 1;
  EXPECT_TRUE(runs_pytorch_depthwise(signal));
}

TEST(Depthwise, OtherOrdersGroupsAndDirectionsAreCudnns) {
  Convolution op = depthwise_of(DType::bf16, 64, 3);
  op.channels_last = true;
  EXPECT_FALSE(runs_pytorch_depthwise(op));
  op.channels_last = false, op.groups = 32;
  EXPECT_FALSE(runs_pytorch_depthwise(op)) << "two channels a group";
  op.groups = 64, op.transposed = true;
  EXPECT_FALSE(runs_pytorch_depthwise(op));
  op.transposed = false, op.out_channels = 128;
  EXPECT_TRUE(runs_pytorch_depthwise(op)) << "two filters a channel";
}

TEST(ConvolutionBounds, GroupsDivideChannels) {
  Convolution op = depthwise_of(DType::bf16, 64, 3);
  EXPECT_EQ(out_of_bounds(op), "");
  op.groups = 48;
  EXPECT_NE(out_of_bounds(op), "");
  op.groups = 32, op.out_channels = 48;
  EXPECT_NE(out_of_bounds(op), "");
}

}  // namespace
}  // namespace ridgeline

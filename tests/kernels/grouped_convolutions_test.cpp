// Kernels of depthwise, grouped and transposed convolutions: how many, over which bytes, with which arithmetic.
#include <gtest/gtest.h>

#include <numeric>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/analytic_engine.h"

namespace ridgeline {
namespace {

const Gpu& grouped_gpu() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu;
}
LoweredOp lowered(const Convolution& op) {
  static const Software software;
  static const Lowering lowering(grouped_gpu(), software);
  return lowering.lower(Op(op));
}
double seconds(const Convolution& op) {
  const AnalyticEngine engine(grouped_gpu());
  double total = 0.0;
  for (const KernelLaunch& launch : lowered(op).launches) total += engine.time(launch, {}).time.value();
  return total;
}
double flops(const Convolution& op) {
  double total = 0.0;
  for (const KernelLaunch& launch : lowered(op).launches) total += launch.flops;
  return total;
}

Convolution depthwise_of(DType type, bool channels_last, std::int64_t kernel) {
  Convolution op{.channels_last = channels_last, .type = type, .batch = 16, .in_channels = 96, .size = 28};
  op.out_channels = op.groups = 96, op.kernel = kernel;
  return op;
}

/// Bytes of an image, which is as large as its output, and of the filters.
constexpr double kImage = 16.0 * 96 * 28 * 28, kFilters = 96.0;

TEST(DepthwiseKernels, ReadAndWriteEveryTensorOnce) {
  for (const DType type : {DType::fp32, DType::bf16, DType::fp16})
    for (const bool last : {false, true})
      for (const std::int64_t kernel : {3, 5, 7, 9}) {
        const double e = static_cast<double>(bytes_of(type));
        Convolution op = depthwise_of(type, last, kernel);
        const auto forward = lowered(op).launches;
        ASSERT_EQ(forward.size(), 1u);
        EXPECT_DOUBLE_EQ(forward[0].read_bytes(), e * (kImage + kFilters * static_cast<double>(kernel * kernel)));
        EXPECT_DOUBLE_EQ(forward[0].written_bytes(), e * kImage);
        EXPECT_DOUBLE_EQ(forward[0].flops, 2.0 * kImage * static_cast<double>(kernel * kernel));
        op.backward = true;
        double written = 0.0;
        for (const KernelLaunch& launch : lowered(op).launches)
          for (const Access& access : launch.writes)
            if (access.operand >= 3) written += access.bytes;
        EXPECT_DOUBLE_EQ(written, e * (kImage + kFilters * static_cast<double>(kernel * kernel)));
      }
}

TEST(DepthwiseKernels, OneGradientIsAPartOfBoth) {
  for (const bool last : {false, true}) {
    Convolution op = depthwise_of(DType::bf16, last, 7);
    op.backward = true;
    const double both = seconds(op);
    op.gradients = ConvolutionGradients::input;
    const double input = seconds(op);
    op.gradients = ConvolutionGradients::weight;
    EXPECT_NEAR(both, input + seconds(op), 1e-9);
    for (const KernelLaunch& launch : lowered(op).launches)
      for (const Access& access : launch.reads) EXPECT_LE(access.operand, 1);
  }
}

// Tensor-core kernels of one channel a group would load eight times what there is; these take what their bytes and
// windows do.
TEST(DepthwiseKernels, AreFasterThanGroupsOfMoreChannels) {
  for (const bool last : {false, true}) {
    const Convolution op = depthwise_of(DType::bf16, last, 3);
    Convolution dense = op;
    dense.groups = 1;
    EXPECT_LT(seconds(op), seconds(dense));
  }
}

TEST(GroupedKernels, ComputeWhatTheirGroupsDo) {
  for (const DType type : {DType::bf16, DType::tf32, DType::fp32})
    for (const std::int64_t groups : {2, 4, 8}) {
      Convolution op{.channels_last = true, .type = type, .batch = 32, .in_channels = 256, .size = 14};
      op.out_channels = 256, op.kernel = 3;
      const double dense = flops(op), dense_time = seconds(op);
      op.groups = groups;
      EXPECT_NEAR(flops(op), dense / static_cast<double>(groups), 1e-6 * dense);
      if (type != DType::fp32) EXPECT_LE(seconds(op), 1.05 * dense_time) << groups;
      else EXPECT_EQ(lowered(op).launches.size() % static_cast<std::size_t>(groups), 0u) << "a kernel a group";
    }
}

TEST(TransposedKernels, ReadOutputsAndComputeImages) {
  Convolution op{
      .channels_last = true, .transposed = true, .type = DType::bf16, .batch = 4, .in_channels = 32, .size = 56};
  op.out_channels = 64, op.kernel = op.stride = 2, op.out_size = 28;
  const auto forward = lowered(op).launches;
  const KernelLaunch& kernel = forward.back();
  EXPECT_EQ(std::get<GemmWork>(kernel.work).gathering.role, Gathering::Role::input_gradient);
  EXPECT_DOUBLE_EQ(kernel.written_bytes(), 2.0 * 4 * 32 * 56 * 56);
  EXPECT_DOUBLE_EQ(kernel.reads[0].bytes, 2.0 * 4 * 64 * 28 * 28);
  EXPECT_DOUBLE_EQ(kernel.flops, 2.0 * 4 * 28 * 28 * 64 * 32 * 4);
}

TEST(SignalKernels, AreImagesOfOneRow) {
  Convolution signal{.type = DType::bf16, .batch = 8, .in_channels = 256, .size = 1, .out_channels = 256};
  signal.width = 784, signal.kernel_width = 3;
  Convolution image = signal;
  image.size = 28, image.width = 28, image.kernel = 1, image.kernel_width = 3;
  EXPECT_NEAR(flops(signal), flops(image), 1e-9 * flops(image));
  signal.stride_width = 4;
  EXPECT_NEAR(flops(signal), flops(image) / 4.0, 0.01 * flops(image)) << "a stride along one side";
}

}  // namespace
}  // namespace ridgeline

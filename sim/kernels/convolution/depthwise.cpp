#include "sim/kernels/convolution/depthwise.h"

#include <algorithm>

#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kResultThreads = 1024, kWarpLanes = 32, kMostWeightThreads = 256;

struct DepthwiseSizes {
  double x, y, w;     ///< bytes
  double multiplies;  ///< of one pass
};
DepthwiseSizes sizes_of(const Convolution& op) {
  const auto element = static_cast<double>(bytes_of(op.type));
  const double images = static_cast<double>(op.batch);
  DepthwiseSizes s{};
  s.x = images * static_cast<double>(op.in_channels * op.pixels()) * element;
  s.y = images * static_cast<double>(op.out_channels * op.out_pixels()) * element;
  s.w = static_cast<double>(op.out_channels * op.taps()) * element;
  s.multiplies = s.y / element * static_cast<double>(op.taps());
  return s;
}

/// Above 32 a single block of 1,024 threads stays on an SM.
int registers_of(const Convolution& op, bool gradient) {
  if (!gradient || op.kernel != 3 || op.kernel_columns() != 3) return 32;
  if (op.stride != 1 || op.stride_columns() != 1) return 40;
  return is_half(op.type) ? 38 : 34;
}

/// A thread a result, which walks its window; neighbours of a warp find theirs in the L1.
KernelLaunch per_result(const Convolution& op, bool gradient) {
  const DepthwiseSizes s = sizes_of(op);
  const auto element = static_cast<double>(bytes_of(op.type));
  const double results = (gradient ? s.x : s.y) / element;
  const double filters_a_result = gradient ? static_cast<double>(op.out_channels / op.in_channels) : 1.0;
  const bool unrolled = op.kernel == op.kernel_columns() && (op.kernel == 1 || op.kernel == 3 || op.kernel == 5);
  // A row of a filter that is walked in a loop costs what so many taps do: bounds and addresses. Forward kernels of
  // known sides have none.
  constexpr double kTapsOfRow = 4.0;
  const double rows = unrolled && !gradient ? 0.0 : static_cast<double>(op.kernel);
  const double taps = static_cast<double>(op.taps()) + kTapsOfRow * rows;
  // All taps of a pixel are looked at, also those that a stride leaves out.
  KernelLaunch launch = memory_bound_launch(
      gradient ? (unrolled ? MemoryBoundKernel::depthwise_gradient : MemoryBoundKernel::depthwise_gradient_any)
               : (unrolled ? MemoryBoundKernel::depthwise_forward : MemoryBoundKernel::depthwise_forward_any),
      gradient ? "conv_depthwise2d_backward" : "conv_depthwise2d_forward", TimeClass::tensor_contraction, op.type,
      {ceil_div(static_cast<std::int64_t>(results), kResultThreads), 1, kResultThreads, registers_of(op, gradient)},
      {.elements = results * taps * filters_a_result,
       .padded_elements = results,
       .iterations = unrolled && gradient ? rows : 1.0});
  launch.flops = 2.0 * s.multiplies;
  launch.reads = {{0, gradient ? s.y : s.x}, {gradient ? 2 : 1, s.w}};
  launch.writes = {{gradient ? 3 : 2, gradient ? s.x : s.y}};
  return launch;
}

/// A block a tap of a filter, a warp an image, a lane a pixel: every tap reads both tensors.
KernelLaunch weights(const Convolution& op) {
  const DepthwiseSizes s = sizes_of(op);
  const std::int64_t threads = std::min(op.batch * kWarpLanes, kMostWeightThreads), warps = threads / kWarpLanes;
  const auto taps = static_cast<double>(op.taps());
  const double passes = static_cast<double>(ceil_div(op.batch, warps) * ceil_div(op.out_pixels(), kWarpLanes));
  KernelLaunch launch = memory_bound_launch(
      MemoryBoundKernel::depthwise_weights, "conv_depthwise2d_grad_weight", TimeClass::tensor_contraction, op.type,
      {op.out_channels * op.taps(), 1, static_cast<int>(threads), 32, warps * 4},
      {.elements =
           static_cast<double>(op.out_channels * op.batch * ceil_div(op.out_pixels(), kWarpLanes) * kWarpLanes) * taps,
       .padded_elements = static_cast<double>(op.out_channels * op.batch * kWarpLanes) * taps,
       .iterations = passes});
  launch.flops = 2.0 * s.multiplies;
  launch.reads = {{0, s.y, s.y * taps}, {1, s.x, std::max(s.x, s.y * taps)}};
  launch.writes = {{4, s.w}};
  return launch;
}

}  // namespace

LoweredOp lower_pytorch_depthwise(const Convolution& op) {
  if (!op.backward) return {{per_result(op, false)}, {}, false};
  LoweredOp result;
  if (op.gradients != ConvolutionGradients::input) result.launches.push_back(weights(op));
  if (op.gradients != ConvolutionGradients::weight) result.launches.push_back(per_result(op, true));
  if (op.gradients == ConvolutionGradients::both) return result;
  // Operands of one gradient: dy, then x or the weight; the result.
  KernelLaunch& launch = result.launches.front();
  launch.reads[1].operand = 1;
  launch.writes[0].operand = 2;
  return result;
}

}  // namespace ridgeline

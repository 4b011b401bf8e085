// The backward pass of layer norms before PyTorch's pull request 68238 (November 2021), by its layer_norm_kernel.cu:
//
//   ComputeInternalGradients   a block of 512 threads a row: sums of dy and of dy·x, each times the weight
//   ComputeGradientFusedParams a thread a row: two factors of the next kernel from these sums
//   LayerNormBackward          a block of 256 threads a row: dx from dy and x, which it reads again
//   GammaBetaBackward          a block of 32 x 16 threads a 32 columns walks all rows, two a thread at once
//
// None loads whole vectors. Nobody measured them here: each is timed by the constants of the later kernel that does
// the same to an element, and the waits of the last one are counted in those of its successor.
#include "sim/kernels/memory_bound/older_norm.h"

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {
namespace {

/// Operands of the backward pass: gradient, input, weight, statistics; then what it writes.
constexpr int kGradient = 0, kInput = 1, kWeight = 2, kStatistics = 3, kResult = 5;

struct NormSizes {
  explicit NormSizes(const Norm& op)
      : bytes(static_cast<double>(op.rows * op.cols * bytes_of(op.type))),
        weight_bytes(static_cast<double>(op.cols * bytes_of(op.type))),
        row_numbers(4.0 * static_cast<double>(op.rows)),
        elements(static_cast<double>(op.rows * ceil_div(op.cols, 32) * 32)) {}
  double bytes, weight_bytes;
  double row_numbers;  ///< bytes of an fp32 number a row
  double elements;     ///< with those of idle lanes in the last warp of a row
};

/// The later kernel takes both sums and dx; this one the sums alone, for which half of its instructions are taken.
KernelLaunch internal_gradients(const Norm& op, const NormSizes& sizes) {
  KernelLaunch launch = memory_bound_launch(
      MemoryBoundKernel::layer_norm_backward, "ComputeInternalGradients", TimeClass::normalization, op.type,
      {op.rows, 1, 512, 32, 256},
      {.elements = 0.5 * sizes.elements, .iterations = static_cast<double>(ceil_div(op.cols, 512))});
  launch.flops = 4.0 * sizes.elements;
  launch.reads = {{kGradient, sizes.bytes}, {kInput, sizes.bytes}, {kWeight, sizes.weight_bytes}};
  launch.writes = {{Access::kTemporary, 2.0 * sizes.row_numbers}};
  return launch;
}

KernelLaunch input_gradient(const Norm& op, const NormSizes& sizes) {
  KernelLaunch launch = memory_bound_launch(
      MemoryBoundKernel::layer_norm_transform, "LayerNormBackward", TimeClass::normalization, op.type,
      {op.rows, 1, 256, 24}, {.elements = sizes.elements, .iterations = static_cast<double>(ceil_div(op.cols, 256))});
  launch.flops = 5.0 * sizes.elements;
  launch.reads = {{kGradient, sizes.bytes},
                  {kInput, sizes.bytes},
                  {kWeight, sizes.weight_bytes},
                  {kStatistics + 1, sizes.row_numbers},
                  {Access::kTemporary, 2.0 * sizes.row_numbers}};
  launch.writes = {{kResult, sizes.bytes}};
  return launch;
}

/// A wait for loads is half of a pass of the later kernel, whose eight rows at once take as long again to add up
/// (its constants: 992 cycles in 16 bits and 283 more from the DRAM, of which an answer of the L2 takes 281).
KernelLaunch older_weight_gradients(const Norm& op, const NormSizes& sizes) {
  constexpr std::int64_t kWaitsOfAPass = 2, kFewRows = 512;
  const bool few = op.rows < kFewRows;  // a thread a column, its loop unrolled by four
  const std::int64_t rows_of_a_wait = few ? 4 : 32;
  const Geometry geometry = few ? Geometry{ceil_div(op.cols, 256), 1, 256, 32}
                                : Geometry{ceil_div(op.cols, 32), 1, 512, 32, std::int64_t{2} * 32 * 33 * 4};
  KernelLaunch launch = memory_bound_launch(
      MemoryBoundKernel::gamma_beta, "GammaBetaBackward", TimeClass::normalization, op.type, geometry,
      {.elements = sizes.elements,
       .iterations = static_cast<double>(ceil_div(op.rows, rows_of_a_wait * kWaitsOfAPass))});
  launch.flops = 4.0 * sizes.elements;
  launch.reads = {{kGradient, sizes.bytes},
                  {kInput, sizes.bytes},
                  {kStatistics, sizes.row_numbers},
                  {kStatistics + 1, sizes.row_numbers}};
  launch.writes = {{kResult + 1, sizes.weight_bytes}};
  if (op.bias) launch.writes.push_back({kResult + 2, sizes.weight_bytes});
  return launch;
}

}  // namespace

LoweredOp lower_older_norm_backward(const Norm& op, const ChipShape& chip, const Software& software) {
  const NormSizes sizes(op);
  LoweredOp result;
  result.temporaries.assign(4, 4 * op.rows);
  result.launches.push_back(internal_gradients(op, sizes));
  Pointwise factors{.function = PointwiseFunction::other, .rows = op.rows, .cols = 1, .input_count = 3};
  for (KernelLaunch& launch : lower_pointwise(factors, chip, software).launches) {
    launch.name = "ComputeGradientFusedParams";
    launch.time_class = TimeClass::normalization;
    for (Access& access : launch.reads) access.operand = Access::kTemporary;
    for (Access& access : launch.writes) access.operand = Access::kTemporary;
    result.launches.push_back(std::move(launch));
  }
  result.launches.push_back(input_gradient(op, sizes));
  result.launches.push_back(older_weight_gradients(op, sizes));
  return result;
}

}  // namespace ridgeline

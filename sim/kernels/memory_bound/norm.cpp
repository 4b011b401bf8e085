// Layer (and RMS) normalisation over the last dimension: a block a row, vectorised where rows are multiples of four
// elements. Backward is two kernels: the input's gradient, a block a row, and the gradients of weight and bias, a block
// for 32 columns that walks all rows. Geometry: PyTorch 2.11; tested by tests/kernels/measured_geometry_test.cpp.
// Before December 2021 nothing was vectorised (`norms_by_vectors`): older_norm.h.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/memory_bound/older_norm.h"

namespace ridgeline {
namespace {

/// Elements for which instructions issue: a warp runs while one of its lanes has an element of the row (`each` a lane).
double with_idle_lanes(const Norm& op, std::int64_t each) {
  return static_cast<double>(op.rows * ceil_div(op.cols, 32 * each) * 32 * each);
}

LoweredOp forward(const Norm& op, const Software& software) {
  const auto elements = static_cast<double>(op.rows * op.cols);
  const double bytes = elements * static_cast<double>(bytes_of(op.type));
  const bool half = is_half(op.type);
  const int weight_count = op.bias && !op.rms ? 2 : 1;
  const double weight_bytes = static_cast<double>(op.cols * bytes_of(op.type));
  const int out = 1 + weight_count;
  const double statistics_bytes = 4.0 * static_cast<double>(op.rows);
  LoweredOp result;
  const auto add_parameters = [&](KernelLaunch& launch) {
    for (int i = 0; i < weight_count; ++i) launch.reads.push_back({1 + i, weight_bytes});
  };
  const auto add_statistics = [&](KernelLaunch& launch) {
    if (!op.rms) launch.writes.push_back({out + 1, statistics_bytes});
    launch.writes.push_back({out + (op.rms ? 1 : 2), statistics_bytes});
  };
  if (op.cols % 4 == 0 && (software.norms_by_vectors || op.rms)) {
    KernelLaunch launch = memory_bound_launch(MemoryBoundKernel::layer_norm_vectorized,
                                              op.rms ? "vectorized_rms_norm" : "vectorized_layer_norm",
                                              TimeClass::normalization, op.type, {op.rows, 1, 128, half ? 32 : 39, 24},
                                              {.elements = with_idle_lanes(op, 4),
                                               .iterations = static_cast<double>(ceil_div(op.cols, 512)),
                                               .reread_bytes = bytes,  // statistics first, then the row again
                                               .reread_row_bytes = static_cast<double>(op.cols * bytes_of(op.type)),
                                               .reread_through_l1 = true});
    launch.flops = 7.0 * elements;
    launch.reads = {{0, bytes}};
    add_parameters(launch);
    launch.writes = {{out, bytes}};
    add_statistics(launch);
    result.launches.push_back(std::move(launch));
    return result;
  }
  KernelLaunch moments = memory_bound_launch(
      MemoryBoundKernel::layer_norm_moments, "RowwiseMoments", TimeClass::normalization, op.type,
      {op.rows, 1, 512, 28, 768}, {.elements = elements, .iterations = static_cast<double>(ceil_div(op.cols, 512))});
  moments.flops = 4.0 * elements;
  moments.reads = {{0, bytes}};
  add_statistics(moments);
  KernelLaunch transform = memory_bound_launch(
      MemoryBoundKernel::layer_norm_transform, "LayerNormForward", TimeClass::normalization, op.type,
      {op.rows, 1, 256, half ? 23 : 21},
      {.elements = with_idle_lanes(op, 1), .iterations = static_cast<double>(ceil_div(op.cols, 256))});
  transform.flops = 3.0 * elements;
  transform.reads = {{0, bytes}};
  add_parameters(transform);
  transform.writes = {{out, bytes}};
  result.launches.push_back(std::move(moments));
  result.launches.push_back(std::move(transform));
  return result;
}

KernelLaunch weight_gradients(const Norm& op, int statistics_count) {
  const auto elements = static_cast<double>(op.rows * op.cols);
  const double bytes = elements * static_cast<double>(bytes_of(op.type));
  const bool half = is_half(op.type);
  const std::int64_t height = op.rows < 64    ? 1
                              : op.rows < 128 ? 8
                              : op.rows < 256 ? 16
                                              : 32;  // rows of threads of a block
  const bool aligned = op.rows % (height * 8) == 0 && op.cols % 32 == 0;
  const int registers = aligned                  ? (half ? 32 : 31)
                        : op.type == DType::fp16 ? (height == 32 ? 49 : 43)
                        : height == 32 || half   ? 46
                                                 : 40;
  KernelLaunch launch = memory_bound_launch(
      aligned ? MemoryBoundKernel::gamma_beta_aligned : MemoryBoundKernel::gamma_beta, "GammaBetaBackward",
      TimeClass::normalization, op.type,
      {ceil_div(op.cols, 32), 1, static_cast<int>(32 * height), registers, 264 * height},
      {.elements = with_idle_lanes(op, 1), .iterations = static_cast<double>(ceil_div(op.rows, height * 8))});
  launch.flops = 4.0 * elements;
  launch.reads = {{0, bytes}, {1, bytes}};
  for (int i = 0; i < statistics_count; ++i) launch.reads.push_back({3 + i, 4.0 * static_cast<double>(op.rows)});
  const int dx = 3 + statistics_count;
  const double weight_bytes = static_cast<double>(op.cols * bytes_of(op.type));
  launch.writes = {{dx + 1, weight_bytes}};
  if (op.bias && !op.rms) launch.writes.push_back({dx + 2, weight_bytes});
  return launch;
}

/// Many rows of few columns leave SMs idle when a block walks all rows of its columns: blocks of a warp take 32 rows
/// each then, and their sums are added by a reduction each for weight and bias.
bool in_partial_sums(const Norm& op, const ChipShape& chip, const Software& software) {
  constexpr std::int64_t kManyRows = 64 * 1024;
  return software.norms_sum_in_parts && op.rows > kManyRows && op.cols / 32 < chip.sm.count / 2;
}

void append_partial_sums(const Norm& op, int statistics_count, const ChipShape& chip, const Software& software,
                         LoweredOp& result) {
  constexpr std::int64_t kRowsAtOnce = 32;
  const auto elements = static_cast<double>(op.rows * op.cols);
  const double bytes = elements * static_cast<double>(bytes_of(op.type));
  const bool aligned = op.rows % kRowsAtOnce == 0 && op.cols % 32 == 0;
  const std::int64_t blocks = ceil_div(op.rows, kRowsAtOnce), weights = op.bias && !op.rms ? 2 : 1;
  KernelLaunch launch = memory_bound_launch(
      aligned ? MemoryBoundKernel::gamma_beta_aligned : MemoryBoundKernel::gamma_beta, "GammaBetaBackward",
      TimeClass::normalization, op.type, {ceil_div(op.cols, 32), blocks, 32, 40},
      {.elements = with_idle_lanes(op, 1), .iterations = static_cast<double>(kRowsAtOnce / 8)});
  launch.flops = 4.0 * elements;
  launch.reads = {{0, bytes}, {1, bytes}};
  for (int i = 0; i < statistics_count; ++i) launch.reads.push_back({3 + i, 4.0 * static_cast<double>(op.rows)});
  const std::int64_t partial = blocks * op.cols * bytes_of(op.type);
  launch.writes = {{Access::kTemporary, static_cast<double>(weights * partial)}};
  result.launches.push_back(std::move(launch));
  for (std::int64_t i = 0; i < weights; ++i) {
    result.temporaries.push_back(partial);
    LoweredOp sum = lower_reduction({ReductionKind::sum_rows, op.type, blocks, op.cols}, chip, software);
    for (KernelLaunch& part : sum.launches) {
      for (Access& read : part.reads) read.operand = Access::kTemporary;
      for (Access& write : part.writes)
        if (write.operand >= 0) write.operand = static_cast<int>(3 + statistics_count + 1 + i);
      result.launches.push_back(std::move(part));
    }
    result.temporaries.insert(result.temporaries.end(), sum.temporaries.begin(), sum.temporaries.end());
  }
}

LoweredOp backward(const Norm& op, const ChipShape& chip, const Software& software) {
  const auto elements = static_cast<double>(op.rows * op.cols);
  const double bytes = elements * static_cast<double>(bytes_of(op.type));
  const bool vectorized = op.cols % 4 == 0;
  const int statistics_count = op.rms ? 1 : 2;
  const int dx = 3 + statistics_count;
  KernelLaunch input = memory_bound_launch(
      vectorized ? MemoryBoundKernel::layer_norm_backward_vectorized : MemoryBoundKernel::layer_norm_backward,
      vectorized ? "layer_norm_grad_input_vec" : "layer_norm_grad_input", TimeClass::normalization, op.type,
      {op.rows, 1, 128, 32, 16},
      {.elements = with_idle_lanes(op, vectorized ? 4 : 1),
       .iterations = static_cast<double>(ceil_div(op.cols, vectorized ? 512 : 128)),
       .reread_bytes = 2.0 * bytes,
       .reread_row_bytes = 2.0 * static_cast<double>(op.cols * bytes_of(op.type)),
       .reread_through_l1 = true});
  input.flops = 12.0 * elements;
  input.reads = {{0, bytes}, {1, bytes}, {2, static_cast<double>(op.cols * bytes_of(op.type))}};
  for (int i = 0; i < statistics_count; ++i) input.reads.push_back({3 + i, 4.0 * static_cast<double>(op.rows)});
  input.writes = {{dx, bytes}};
  LoweredOp result;
  result.launches.push_back(std::move(input));
  if (in_partial_sums(op, chip, software)) append_partial_sums(op, statistics_count, chip, software, result);
  else result.launches.push_back(weight_gradients(op, statistics_count));
  return result;
}

}  // namespace

LoweredOp lower_norm(const Norm& op, const ChipShape& chip, const Software& software) {
  if (op.rows < 1 || op.cols < 1) throw std::invalid_argument("a normalisation needs at least one row and one column");
  if (!op.backward) return forward(op, software);
  if (!software.norms_by_vectors && !op.rms) return lower_older_norm_backward(op, chip, software);
  return backward(op, chip, software);
}

}  // namespace ridgeline

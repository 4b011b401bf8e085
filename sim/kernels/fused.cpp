// Kernels that torch.compile generates, with the geometry its heuristics choose.
//
// Point-wise: blocks of 4 warps, up to 1024 elements each. Rows: a block a row or several short ones, the row kept in
// registers. Long rows: a block a row, walked in a loop twice. Sums over rows: each block adds a stretch of rows for 32
// columns or so; a second kernel adds the stretches. Tested by tests/kernels/fused_test.cpp.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/stream_launch.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kManyElements = 1 << 20, kRowsOfBlock = 16;

struct Choice {
  StreamKernel kernel;
  Geometry geometry;
  double iterations = 1.0;
};

Choice choice_of(const FusedKernel& op) {
  const std::int64_t elements = op.rows * op.cols;
  using Shape = FusedKernel::Shape;
  switch (op.shape) {
    case Shape::pointwise: {
      const std::int64_t block = elements >= kManyElements ? 1024 : elements >= 65536 ? 512 : 128;
      return {op.gathers ? StreamKernel::triton_gather : StreamKernel::triton_pointwise,
              {ceil_div(elements, block), 1, block == 512 ? 256 : 128, 24, 0}};
    }
    case Shape::rows: {
      if (op.column_results > 0) {  // each block walks through its rows and keeps the sums over them
        const std::int64_t blocks = std::clamp<std::int64_t>(op.rows / kRowsOfBlock, 1, 1024);
        return {StreamKernel::triton_row_blocks,
                {blocks, 1, op.cols > 512 ? 128 : 64, 80, 64},
                static_cast<double>(ceil_div(op.rows, blocks))};
      }
      const std::int64_t side_by_side = std::max<std::int64_t>(1, 1024 / std::max<std::int64_t>(1, op.cols));
      const int threads = elements >= kManyElements ? 32 : 128;
      return {StreamKernel::triton_rows, {ceil_div(op.rows, side_by_side), 1, threads, 80, 64}};
    }
    case Shape::long_rows:
      return {StreamKernel::triton_long_rows, {op.rows, 1, 512, 32, 128}, static_cast<double>(ceil_div(op.cols, 2048))};
    case Shape::columns: break;
  }
  // 64 columns of a stretch of rows a block; the stretches are those of the partial sums written.
  std::int64_t stretches = 1;
  if (!op.writes.empty()) stretches = std::max<std::int64_t>(1, op.writes.front() / (4 * op.cols));
  return {StreamKernel::triton_columns,
          {ceil_div(op.cols, 64) * stretches, 1, 128, 32, 2048},
          static_cast<double>(ceil_div(op.rows, stretches * 16))};
}

}  // namespace

LoweredOp lower_fused(const FusedKernel& op, const Gpu& /*gpu*/, const Software& /*software*/) {
  if (op.rows < 1 || op.cols < 1) throw std::invalid_argument("a generated kernel needs at least one element");
  const Choice choice = choice_of(op);
  const auto elements = static_cast<double>(op.rows * op.cols);
  const TimeClass time_class =
      op.shape == FusedKernel::Shape::pointwise ? TimeClass::elementwise : TimeClass::normalization;
  const auto arithmetic = static_cast<double>(op.arithmetic);
  KernelLaunch launch =
      stream_launch(choice.kernel, name_of(Op{op}), time_class, op.type, choice.geometry,
                    {.elements = elements * (1.0 + arithmetic / constants_of(choice.kernel).instructions_full),
                     .iterations = choice.iterations});
  launch.flops = elements * static_cast<double>(op.arithmetic);
  int operand = 0;
  for (const std::int64_t bytes : op.reads) launch.reads.push_back({operand++, static_cast<double>(bytes)});
  for (const std::int64_t bytes : op.writes) launch.writes.push_back({operand++, static_cast<double>(bytes)});
  LoweredOp result;
  result.launches.push_back(std::move(launch));
  return result;
}

}  // namespace ridgeline

// Kernels that torch.compile generates, with the geometry its heuristics choose.
//
// Point-wise: blocks of 4 warps, up to 1024 elements each. Rows: a block a row or several short ones, the row kept in
// registers. Long rows: a block a row, walked in a loop twice. Sums over rows: each block adds a stretch of rows for 32
// columns or so; a second kernel adds the stretches. Tested by tests/kernels/fused_test.cpp.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kManyElements = 1 << 20, kRowsOfBlock = 16;

struct BlockChoice {
  MemoryBoundKernel kernel;
  Geometry geometry;
  double iterations = 1.0;
};

/// A kernel with as much arithmetic makes random numbers: they take registers, so that fewer warps fit.
constexpr std::int64_t kRandomNumbers = 150;

/// Dependent work of a thread: its elements, one after another, each with the kernel's instructions.
double work_of_a_thread(const FusedKernel& op, const BlockChoice& choice) {
  const double threads = static_cast<double>(choice.geometry.grid_x * choice.geometry.threads);
  const double instructions = constants_of(choice.kernel).instructions_full;
  return static_cast<double>(op.rows * op.cols) / threads * (1.0 + static_cast<double>(op.arithmetic) / instructions);
}

BlockChoice choice_of(const FusedKernel& op) {
  const std::int64_t elements = op.rows * op.cols;
  using Shape = FusedKernel::Shape;
  switch (op.shape) {
    case Shape::pointwise: {
      const std::int64_t block = elements >= kManyElements ? 1024 : elements >= 65536 ? 512 : 128;
      BlockChoice choice{op.gathers ? MemoryBoundKernel::triton_gather : MemoryBoundKernel::triton_pointwise,
                         {ceil_div(elements, block), 1, block == 512 ? 256 : 128, 24, 0}};
      choice.iterations = work_of_a_thread(op, choice);
      return choice;
    }
    case Shape::rows: {
      if (op.column_results > 0) {  // each block walks through its rows and keeps the sums over them
        const std::int64_t blocks = std::clamp<std::int64_t>(op.rows / kRowsOfBlock, 1, 1024);
        const bool wide = op.cols > 512;
        const int threads = wide ? 128 : 64;
        return {MemoryBoundKernel::triton_row_blocks,
                {blocks, 1, threads, wide ? 80 : 220, 64},
                static_cast<double>(elements) / static_cast<double>(blocks * threads)};
      }
      const std::int64_t side_by_side = std::max<std::int64_t>(1, 1024 / std::max<std::int64_t>(1, op.cols));
      const int threads = elements >= kManyElements ? 32 : elements >= 262144 ? 64 : 256;
      const bool random = op.arithmetic >= kRandomNumbers;
      const int registers = op.cols > 512 ? (random ? 200 : 90) : (random ? 130 : 72);
      BlockChoice choice{
          MemoryBoundKernel::triton_rows,
          {ceil_div(op.rows, threads > 64 ? 1 : side_by_side), 1, threads, threads == 32 ? registers : 32, 64}};
      choice.iterations = work_of_a_thread(op, choice);
      return choice;
    }
    case Shape::long_rows:
      return {MemoryBoundKernel::triton_long_rows,
              {op.rows, 1, 512, 32, 128},
              static_cast<double>(ceil_div(op.cols, 2048))};
    case Shape::columns: break;
  }
  // 64 columns of a stretch of rows a block; the stretches are those of the partial sums written.
  std::int64_t stretches = 1;
  if (!op.writes.empty()) stretches = std::max<std::int64_t>(1, op.writes.front() / (4 * op.cols));
  return {MemoryBoundKernel::triton_columns,
          {ceil_div(op.cols, 64) * stretches, 1, 128, 32, 2048},
          static_cast<double>(ceil_div(op.rows, stretches * 16))};
}

}  // namespace

LoweredOp lower_fused(const FusedKernel& op, const ChipShape& /*chip*/, const Software& /*software*/) {
  if (op.rows < 1 || op.cols < 1) throw std::invalid_argument("a generated kernel needs at least one element");
  const BlockChoice choice = choice_of(op);
  const auto elements = static_cast<double>(op.rows * op.cols);
  const TimeClass time_class =
      op.shape == FusedKernel::Shape::pointwise ? TimeClass::elementwise : TimeClass::normalization;
  auto arithmetic = static_cast<double>(op.arithmetic);
  // Rows of odd length begin anywhere: a load moves one element.
  constexpr double kUnalignedInstructions = 10.0;
  if (op.shape == FusedKernel::Shape::long_rows && op.cols % 2 != 0) arithmetic += kUnalignedInstructions;
  KernelLaunch launch =
      memory_bound_launch(choice.kernel, name_of(Op{op}), time_class, op.type, choice.geometry,
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

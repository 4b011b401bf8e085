// Fused dropout: reads x, draws random numbers, writes y and a one-byte mask. A block of 256 threads, never more blocks
// than fit eight an SM; vector loads of the widest width that divides the element count. PyTorch 2.11; tested by
// tests/kernels/measured_geometry_test.cpp.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/occupancy/occupancy.h"

namespace ridgeline {

LoweredOp lower_dropout(const Dropout& op, const ChipShape& chip, const Software& /*software*/) {
  const std::int64_t n = op.elements;
  if (n < 1) throw std::invalid_argument("dropout needs at least one element");
  const std::int64_t element = bytes_of(op.type);
  std::int64_t vector = 1;
  for (const std::int64_t width : {8, 4, 2})
    if (width * element <= 16 && n % width == 0) {
      vector = width;
      break;
    }
  const std::int64_t unroll = vector > 1 ? vector : 4;
  const std::int64_t grid = std::min<std::int64_t>(ceil_div(n, 256), std::int64_t{8} * chip.sm.count);
  const int registers = vector == 8   ? (op.type == DType::fp16 ? 56 : 55)
                        : vector == 4 ? (op.type == DType::fp16   ? 52
                                         : op.type == DType::bf16 ? 50
                                                                  : 51)
                        : vector == 2 ? 48
                                      : 56;
  const auto elements = static_cast<double>(n);
  const std::int64_t turns = ceil_div(n, grid * 256 * unroll);
  // Four random numbers a draw. The scalar kernel, which begins with its offsets, draws for four elements a grid apart,
  // also where there is but one, and takes the time of 1.52 draws of the vector kernel.
  constexpr double kScalarDraw = 1.52;
  const double draws = vector > 1 ? elements / static_cast<double>(vector)
                                  : kScalarDraw * static_cast<double>(turns * std::min(n, grid * 256));
  KernelLaunch launch = memory_bound_launch(
      MemoryBoundKernel::dropout, "fused_dropout", TimeClass::elementwise, op.type, {grid, 1, 256, registers},
      {.elements = elements,
       .padded_elements = draws,
       // A draw makes four numbers: eight elements a thread take two, one after the other.
       .iterations = static_cast<double>(turns * (vector == 8 ? 2 : 1)),
       .tail_steps = vector > 1 ? 0.0 : 1.0});
  // Every block sets up its generators, also those that find no element left; of them, those that must wait for a place
  // on an SM cost no wave of their own.
  const auto at_once = std::int64_t{chip.sm.count} * std::max(1, occupancy_of(chip.sm, launch).blocks);
  const std::int64_t with_elements = std::min(grid, ceil_div(n, 256 * (vector > 1 ? vector : 1)));
  std::get<MemoryBoundWork>(launch.work).active_blocks =
      static_cast<double>(std::max(with_elements, std::min(grid, at_once)));
  launch.flops = 2.0 * elements;
  launch.reads = {{0, elements * static_cast<double>(element)}};
  launch.writes = {{1, elements * static_cast<double>(element)}, {2, elements}};
  return {{std::move(launch)}, {}, false};
}

}  // namespace ridgeline

// Kernels of bitsandbytes 0.50 (csrc/kernels.cu): optimizers whose states have 8 or 32 bits, weights of four bits, and
// products of eight bits. Grids and registers are those of measurements/h200/calls/libraries.jsonl.gz.
#include "sim/kernels/memory_bound/bits_and_bytes.h"

#include <optional>

#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {
namespace {

using F = PointwiseFunction;
using K = MemoryBoundKernel;

struct Kernel {
  K kernel;
  const char* name;
  int threads;
  std::int64_t of_a_block;  ///< elements
  int registers;
};

std::optional<Kernel> kernel_of(const Pointwise& op) {
  constexpr std::int64_t kStatesOfABlock = 256, kWideOfABlock = 4096;
  const bool in_blocks = op.inputs[2] == DType::uint8;
  switch (op.function) {
    case F::update_two:
      if (in_blocks)
        return Kernel{K::update_blocks_two, "kOptimizerStatic8bit2StateBlockwise", 256, kStatesOfABlock, 56};
      return Kernel{K::update_two, "kOptimizer32bit2State", 1024, kWideOfABlock, 56};
    case F::update_one:
      if (in_blocks)
        return Kernel{K::update_blocks_one, "kOptimizerStatic8bit1StateBlockwise", 256, kStatesOfABlock, 47};
      return Kernel{K::update_one, "kOptimizer32bit1State", 1024, kWideOfABlock, 48};
    case F::expand_4bit: return Kernel{K::expand_codes, "kDequantizeBlockwise", 64, 1024, 48};
    case F::expand_8bit: return Kernel{K::expand_codes, "kDequantizeBlockwise", 64, 512, 32};
    case F::quantize_rows: return Kernel{K::quantize_rows, "kInt8VectorQuant", 1024, op.cols, 28};
    case F::scale_sums: return Kernel{K::scale_sums, "kdequant_mm_int32_fp16", 512, 2048, 32};
    default: return std::nullopt;
  }
}

}  // namespace

bool of_bits_and_bytes(PointwiseFunction function) { return kernel_of({.function = function}).has_value(); }

LoweredOp lower_bits_and_bytes(const Pointwise& op) {
  const Kernel kernel = *kernel_of(op);
  const bool updates = op.function == F::update_two || op.function == F::update_one;
  const auto count = static_cast<double>(op.elements());
  // A thread of quantize_rows takes every 1,024th number of its row, first for the largest, then to divide by it.
  const double passes =
      op.function == F::quantize_rows ? 2.0 * static_cast<double>(ceil_div(op.cols, std::int64_t{1024})) : 1.0;
  KernelLaunch launch =
      memory_bound_launch(kernel.kernel, kernel.name, updates ? TimeClass::optimizer : TimeClass::elementwise,
                          op.output, {ceil_div(op.elements(), kernel.of_a_block), 1, kernel.threads, kernel.registers},
                          {.elements = count, .iterations = passes});
  const auto bytes = [&](DType type) { return count * static_cast<double>(bytes_of(type)); };
  for (int i = 0; i < op.input_count; ++i) launch.reads.push_back({i, bytes(op.inputs[i])});
  launch.writes = {{op.input_count, bytes(op.output)}};
  if (op.function == F::expand_4bit && !launch.reads.empty()) launch.reads.front().bytes /= 2.0;
  if (updates && !launch.reads.empty()) {  // states are written back
    const double states = bytes(op.inputs[2]) * (op.function == F::update_two ? 2.0 : 1.0);
    launch.reads.back().bytes = states;
    launch.writes.push_back({2, states});
  }
  return {{std::move(launch)}, {}, false};
}

}  // namespace ridgeline

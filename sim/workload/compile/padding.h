// Products whose rows tensor cores cannot read aligned: PyTorch's compiler pads their operands where a benchmark says
// that this pays (torch/_inductor/fx_passes/pad_mm.py).
#pragma once

#include <cstdint>
#include <optional>

#include "sim/workload/op.h"

namespace ridgeline::compile {

struct Padding {
  std::int64_t m = 0, n = 0, k = 0;    ///< after padding
  bool first = false, second = false;  ///< which operands are longer than they were
};

/// Who made an operand decides whether the copy into padded rows counts: kernels that the compiler generates are
/// assumed to write there at once.
enum class MadeBy : std::uint8_t { script, library, generated };

/// None where nothing is to be padded or the benchmark would say no. The benchmark is replaced by: products of rows
/// aligned to 1, 2 or 4 elements take 2.2, 1.45 or 1.2 times as long, copies move a byte in the time of 170 FLOPs (an
/// H200; 120 on a V100), and a tenth must be gained.
std::optional<Padding> padding_of(const Matmul& op, MadeBy first, MadeBy second);

/// Rows of results that only the graph sees: longer ones than 1024 elements begin at multiples of 128 bytes.
std::int64_t length_of_rows(std::int64_t cols, std::int64_t element_bytes);

}  // namespace ridgeline::compile

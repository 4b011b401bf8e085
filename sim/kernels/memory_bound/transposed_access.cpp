#include "sim/kernels/memory_bound/transposed_access.h"

#include <algorithm>
#include <cmath>

namespace ridgeline {
namespace {

/// Lines that an SM's blocks have open, as multiples of its L1, until which all are found again and from which none is.
constexpr double kLinesHitAll = 0.5, kLinesHitNone = 1.2;

/// Blocks of an SM whose lines are open together, where the grid has that many: those of 128 threads that 64 warps
/// make.
constexpr double kOpenBlocks = 16.0;

}  // namespace

/// A block's elements lie one row of the source apart; once they reach the last row they go on in the next column,
/// whose elements sit in the sectors already read, as long as the L1 can hold a line for each row of each of the SM's
/// blocks.
double sectors_an_element(std::int64_t rows, std::int64_t cols, DType type, const ChipShape& chip,
                          std::int64_t per_block) {
  constexpr double kLine = 128.0, kSector = 32.0;
  const auto elements = static_cast<double>(std::min(per_block, rows * cols));
  const auto apart = static_cast<double>(rows);
  const double columns = std::max(1.0, elements / apart);
  const double blocks = static_cast<double>(rows * cols) / static_cast<double>(per_block);
  const double resident = std::clamp(std::ceil(blocks / chip.sm.count), 1.0, kOpenBlocks);
  const double open = resident * std::min(apart, elements) * kLine / std::max(1.0, chip.sm.l1_and_shared.value());
  const double found = std::clamp((kLinesHitNone - open) / (kLinesHitNone - kLinesHitAll), 0.0, 1.0);
  const double again = 1.0 - found + found * static_cast<double>(bytes_of(type)) / kSector;
  return std::min(1.0, (1.0 + (columns - 1.0) * again) / columns);
}

}  // namespace ridgeline

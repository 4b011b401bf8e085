// What reading a tensor across its rows asks of the caches: an element of each 32-byte sector at a time.
#pragma once

#include <cstdint>

#include "sim/hardware/chip_shape.h"
#include "sim/workload/dtype.h"

namespace ridgeline {

/// A read that strides over rows fetches a 32-byte sector for every element, and scattered sectors pass the L2 more
/// slowly than whole lines: as if each were this many bytes. Fitted on transposed copies, 6.5 ps an element in 16 bits
/// and in 32.
inline constexpr double kScatteredSectorBytes = 46.0;

/// Sectors a block of `per_block` elements asks the L2 for, an element, when a matrix whose result has `rows` rows of
/// `cols` is transposed.
double sectors_an_element(std::int64_t rows, std::int64_t cols, DType type, const ChipShape& chip,
                          std::int64_t per_block);

}  // namespace ridgeline

// Reads by strides and the caches. The kernel walks its result in order, a few elements a thread one block
// width apart (at::native::elementwise_kernel); the operand's strides say which lines a warp and a block touch.
#pragma once

#include <cstdint>

#include "sim/hardware/chip_shape.h"
#include "sim/workload/op.h"

namespace ridgeline {

/// Thread instructions of an element for each dimension beyond two: a division by multiplication and the offsets of two
/// operands. Read from copies of one to six dimensions at millions of elements on an H200.
inline constexpr double kInstructionsADimension = 13.0;

struct StridedAccess {
  double lines = 0.0;      ///< lines of the L1 that warps look up, in all
  double requested = 0.0;  ///< bytes that blocks ask the L2 for
  double bytes = 0.0;      ///< of the sectors that come from the DRAM where the L2 held nothing
  /// Instructions of an element for the dimensions beyond two that the classes of kernels were fitted with.
  double arithmetic = 0.0;
};

/// Instructions of an element for the dimensions beyond two.
double arithmetic_of(const SizeList& dimensions);

/// Accesses of `elements` results in blocks of `per_block` that read an operand of `type` along `dimensions` (sizes and
/// strides, the fastest first).
StridedAccess strided_access(const SizeList& dimensions, DType type, std::int64_t elements, std::int64_t per_block,
                             const ChipShape& chip);

}  // namespace ridgeline

// CUB's radix sort of pairs over the whole device, as PyTorch calls it to sort indices.
#pragma once

#include "sim/hardware/chip_shape.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"

namespace ridgeline {

struct RadixSort {
  std::int64_t keys = 0;
  int passes = 8;          ///< a digit of eight bits each
  int busy_passes = 8;     ///< in which the digits differ
  std::int64_t bits = 64;  ///< of a key that are looked at
};

/// Adds the kernels: places counted up, a histogram of all digits, a sweep a pass.
void append_radix_sort(const RadixSort& sort, const ChipShape& chip, LoweredOp& result);

/// A small kernel of the sort path; what it moves stays in the L2. `round_trips`: dependent steps through the L2, in
/// the length of one of them.
KernelLaunch small_kernel(MemoryBoundKernel kernel, std::string name, double round_trips, std::int64_t grid,
                          int threads, int registers, std::int64_t shared);

}  // namespace ridgeline

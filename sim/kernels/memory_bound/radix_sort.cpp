#include "sim/kernels/memory_bound/radix_sort.h"

#include <algorithm>

#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {

KernelLaunch small_kernel(MemoryBoundKernel kernel, std::string name, double round_trips, std::int64_t grid,
                          int threads, int registers, std::int64_t shared) {
  KernelLaunch launch = memory_bound_launch(kernel, std::move(name), TimeClass::elementwise, DType::int64,
                                            {grid, 1, threads, registers, shared}, {.iterations = round_trips});
  launch.pipe = Pipe::none;
  return launch;
}

void append_radix_sort(const RadixSort& sort, const ChipShape& chip, LoweredOp& result) {
  constexpr std::int64_t kTile = 384 * 12;
  auto& launches = result.launches;
  launches.push_back(small_kernel(MemoryBoundKernel::tiny, "arange", 0.5, ceil_div(sort.keys, 64), 64, 16, 0));
  // Few keys are sorted by one block of 256 threads, nine keys each, six bits a pass; a pass is a scan of its counts
  // and an exchange, in round trips of the L2.
  constexpr std::int64_t kMostOfTile = 256 * 9, kBitsOfTile = 6;
  constexpr double kLoadAndStore = 0.3, kPassOfTile = 3.65;
  if (sort.keys <= kMostOfTile) {
    const auto passes = static_cast<double>(ceil_div(std::max<std::int64_t>(1, sort.bits), kBitsOfTile));
    launches.push_back(small_kernel(MemoryBoundKernel::tiny, "RadixSortSingleTile",
                                    kLoadAndStore + kPassOfTile * passes, 1, 256, 64, 32768));
    return;
  }
  launches.push_back(memset_launch(0.0, Access::kTemporary));
  launches.push_back(memset_launch(0.0, Access::kTemporary));
  launches.push_back(
      small_kernel(MemoryBoundKernel::sort_histogram, "RadixSortHistogram", 0.0, 7 * chip.sm.count, 128, 72, 8192));
  launches.push_back(small_kernel(MemoryBoundKernel::tiny, "RadixSortExclusiveSum", 1.0, sort.passes, 256, 32, 2336));
  for (int pass = 0; pass < sort.passes; ++pass) {
    launches.push_back(memset_launch(0.0, Access::kTemporary));
    launches.push_back(small_kernel(MemoryBoundKernel::sort_pass, "RadixSortOnesweep",
                                    pass < sort.busy_passes ? 1.0 : 0.0, ceil_div(sort.keys, kTile), 384, 80, 38912));
  }
}

}  // namespace ridgeline

// Shorthand shared by the lowering rules of memory-bound kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "sim/launch/kernel_launch.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "sim/units/ceil_div.h"

namespace ridgeline {

/// Largest power of two that is not above `value` (1 for 0).
constexpr std::int64_t power_of_two_below(std::int64_t value) {
  std::int64_t result = 1;
  while (result * 2 <= value) result *= 2;
  return result;
}
constexpr int log2_ceil(std::int64_t value) {
  int result = 0;
  while ((std::int64_t{1} << result) < value) ++result;
  return result;
}

/// A launch of a memory-bound kernel; bytes and work are filled in by the caller.
struct Geometry {
  std::int64_t grid_x = 1, grid_y = 1;
  int threads = 128, registers = 32;
  std::int64_t shared = 0;
};

inline KernelLaunch memory_bound_launch(MemoryBoundKernel kernel, std::string name, TimeClass time_class, DType type,
                                        const Geometry& geometry, const MemoryBoundWork& work) {
  KernelLaunch launch;
  launch.name = std::move(name);
  launch.time_class = time_class;
  launch.grid = {geometry.grid_x, geometry.grid_y, 1};
  launch.threads_per_block = geometry.threads;
  launch.registers_per_thread = geometry.registers;
  launch.shared_bytes_per_block = geometry.shared;
  launch.type = type;
  launch.pipe = Pipe::fp32;
  MemoryBoundWork tagged = work;
  tagged.kernel_class = static_cast<int>(kernel);
  launch.work = tagged;
  return launch;
}

/// Steps of the last block of a vectorised point-wise kernel (1,024 elements, 128 threads) behind its first: where it
/// is not full it cannot use vectors, and its threads go element by element. One element a thread costs what a vector
/// does.
inline double scalar_steps(std::int64_t elements) {
  return static_cast<double>(std::max<std::int64_t>(0, ceil_div(elements % 1024, 128) - 1));
}

/// Lines of the L1 an element of rows that stay whole.
inline double lines_in_rows(DType type) { return static_cast<double>(bytes_of(type)) / 128.0; }

/// cudaMemset of a few or many bytes.
inline KernelLaunch memset_launch(double bytes, int operand) {
  KernelLaunch launch;
  launch.name = "Memset";
  launch.time_class = TimeClass::elementwise;
  launch.work = FixedWork{FixedWork::What::memset, bytes, 1.0};
  if (bytes > 0.0) launch.writes.push_back({operand, bytes, 0.0});
  return launch;
}

/// A device-to-device copy by the driver's kernel. Below 1 MiB its time grows with the bytes though they lie in the L2
/// (0.77 us + 0.7 us a MB on an H200): a few blocks walk the buffer, here counted in passes of 64 KiB. From 1 MiB on
/// many do, and what is left over from whole pages of 4 KiB is copied by a second kernel behind the first, in the same
/// activity of the profiler: 2.4 us more on an H200, whatever the size.
inline KernelLaunch device_copy_launch(DType type, std::int64_t elements, int from, int to) {
  const std::int64_t bytes = elements * bytes_of(type);
  constexpr std::int64_t kSplitFrom = std::int64_t{1} << 20, kPage = 4096, kPass = 65536;
  KernelLaunch launch = memory_bound_launch(
      MemoryBoundKernel::copy_device, "Memcpy DtoD", TimeClass::copy, type, {ceil_div(elements, 1024)},
      {.elements = static_cast<double>(elements),
       .iterations = bytes < kSplitFrom ? static_cast<double>(bytes) / static_cast<double>(kPass) : 1.0,
       .tail_steps = bytes >= kSplitFrom && bytes % kPage != 0 ? 1.0 : 0.0});
  launch.pipe = Pipe::none;
  launch.reads = {{from, static_cast<double>(bytes)}};
  launch.writes = {{to, static_cast<double>(bytes)}};
  return launch;
}

/// Number of equal launches a point-wise kernel is split into: indices are 32 bits of bytes, so a tensor of more than
/// 2^31 bytes is halved until each half fits.
constexpr int index_splits(double largest_operand_bytes) {
  int splits = 1;
  while (largest_operand_bytes / splits > 2147483647.0) splits *= 2;
  return splits;
}

}  // namespace ridgeline

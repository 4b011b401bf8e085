// What a launch takes before and after its work: the part of a kernel's time that an empty kernel takes too.
#pragma once

#include "sim/timing/clock_law.h"

namespace ridgeline {

/// An empty kernel, in cycles: 0.75 us of an H200 at 1.85 GHz. The laws of products and of attention count their start
/// in cycles and were fitted there, so that this much of it is the launch.
inline constexpr double kEmptyKernelCycles = 1388.0;

/// Of a kernel's time, what an empty one of its kind takes. The laws of memory-bound kernels and of memsets and copies
/// begin with a number of the chip, `launch.kernel_fixed` and `launch.memset`; the others with cycles.
inline Seconds empty_time(const KernelLaunch& launch, const Gpu& gpu) {
  if (std::holds_alternative<StreamWork>(launch.work)) return gpu.launch.kernel_fixed;
  if (std::holds_alternative<FixedWork>(launch.work)) return gpu.launch.memset;
  return Seconds{kEmptyKernelCycles / kernel_clock(gpu, launch.pipe, 0.0).value()};
}

}  // namespace ridgeline

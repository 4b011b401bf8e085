// Predicts one kernel case: the op lowered on a GPU, each of its kernels timed, summed as a profiler would sum them.
#pragma once

#include <string_view>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/hardware/software.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/kernel_time.h"
#include "sim/workload/kernel_case.h"

namespace ridgeline {

struct KernelPrediction {
  Seconds time;
  std::vector<KernelLaunch> launches;
  std::vector<KernelTime> times;  ///< of each launch
  std::size_t longest = 0;  ///< the launch that takes most of the time: its limiter, occupancy, waves stand for the op
  double flops = 0, dram_read_bytes = 0, dram_write_bytes = 0, l2_hit_rate = 0;
  bool approximated = false;
};

/// Throws UserError (or std::invalid_argument from lowering) for a shape that cannot be.
KernelPrediction predict_kernel(const KernelCase& kernel, const Gpu& gpu, const Software& software,
                                const TimingEngine& engine);

KernelPrediction predict_kernel(const KernelCase& kernel, const Lowering& lowering, const TimingEngine& engine);

/// The same with kernels that are given, such as those chosen for another GPU.
KernelPrediction time_launches(const KernelCase& kernel, std::vector<KernelLaunch> launches, const Gpu& gpu,
                               const TimingEngine& engine);

}  // namespace ridgeline

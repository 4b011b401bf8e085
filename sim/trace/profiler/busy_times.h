// What of the GPU's time was one kernel's alone, and what several shared.
#pragma once

#include <utility>
#include <vector>

#include "sim/trace/profiler/profiler_events.h"

namespace ridgeline::trace {

/// Length of the union of intervals (begin, end).
double union_of(std::vector<std::pair<double, double>> spans);

/// For each of what ran on the GPU (ordered by begin) the microseconds in which kernels of other streams ran on the
/// same device too. Copies to and from the host take nothing of the SMs and next to nothing of the memory: they do not
/// count.
std::vector<double> times_beside_others(const std::vector<GpuEvent>& gpu);

}  // namespace ridgeline::trace

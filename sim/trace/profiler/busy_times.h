// What of the GPU's time was one kernel's alone, and what several shared.
#pragma once

#include <utility>
#include <vector>

#include "sim/trace/profiler/profiler_events.h"
#include "sim/trace/profiler/profiler_steps.h"

namespace ridgeline::trace {

/// Length of the union of intervals (begin, end).
double union_of(std::vector<std::pair<double, double>> spans);

/// For each of what ran on the GPU (ordered by begin) the microseconds in which kernels of other streams ran on the
/// same device too. Copies to and from the host take nothing of the SMs and next to nothing of the memory: they do not
/// count.
std::vector<double> times_beside_others(const std::vector<GpuEvent>& gpu);

/// Totals of the step; `items` are entries of `events.gpu`, at least one.
MeasuredStep measured_step(const ProfilerEvents& events, const std::vector<std::size_t>& items,
                           const StepWindow& window);

/// Number formats of kernels among these of which not every GPU has the instructions, as the kernels' names say.
std::vector<FormatUse> formats_of(const ProfilerEvents& events, const std::vector<std::size_t>& items);

/// GPUs on which kernels among these ran.
std::size_t devices_of(const ProfilerEvents& events, const std::vector<std::size_t>& items);

}  // namespace ridgeline::trace

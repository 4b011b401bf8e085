// Training steps among the NVTX ranges of a report.
#pragma once

#include <vector>

#include "sim/trace/profiler/profiler_events.h"

namespace ridgeline::trace {

/// Ranges of one name, digits aside ("step 3", "iteration 17"), on one thread, none inside another of them, in which
/// most of the GPU's work was launched. Those called a step or an iteration are preferred; empty where none are.
/// `launched` holds for each of `events.gpu` when the host issued it.
std::vector<HostEvent> nsight_steps(const ProfilerEvents& events, const std::vector<double>& launched);

}  // namespace ridgeline::trace

// Which operator of a profiler's trace stands around what: by the order of begins and ends on a thread.
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "sim/trace/profiler/profiler_events.h"
#include "sim/trace/profiler/profiler_steps.h"

namespace ridgeline::trace {

inline constexpr std::size_t kNoOperator = std::numeric_limits<std::size_t>::max();

/// The operator around each, of operators in the order of their begin.
std::vector<std::size_t> parents_of(const std::vector<OperatorEvent>& operators);

/// The innermost operator around each call of the runtime, both in the order of their begin.
std::vector<std::size_t> operators_around(const std::vector<RuntimeEvent>& calls,
                                          const std::vector<OperatorEvent>& operators);

/// The defect that counts what launches_without_kernel gives.
inline constexpr std::string_view kLaunchesWithoutKernel =
    "launches whose kernel is not in the trace (captured into a CUDA graph, or not recorded)";

/// Calls in the window that launch a kernel which the trace does not hold: it was captured into a CUDA graph, or
/// kernels were not recorded.
std::int64_t launches_without_kernel(const ProfilerEvents& events, const StepWindow& window);

}  // namespace ridgeline::trace

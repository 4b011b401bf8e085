// Kernels that were launched before the profiler looked at the host: the GPU lags behind it, and what it still had to
// do when the recording began has no operator. Steps repeat: the same kernels, launched alike, came again later.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/trace/profiler/profiler_events.h"

namespace ridgeline::trace {

/// For each of `gpu` that is `unseen`, which later one of its stream it does the work of: where eight and more in a row
/// have the same names and blocks as a row of seen ones. Its own place where there is none, as for all that are seen.
std::vector<std::size_t> later_twins(const std::vector<GpuEvent>& gpu, const std::vector<bool>& unseen);

}  // namespace ridgeline::trace

// Counters of a timeline: the allocator's memory, utilisation of the GPU, and what a simulation saw.
#pragma once

#include <span>

#include "sim/report/timeline/chrome_trace.h"
#include "sim/report/timeline/trace_events.h"
#include "sim/timeline/host_slices.h"

namespace ridgeline {

/// `slices` are the host's of the same step; `device` is the process of the GPU in the trace.
void add_counters(TraceEvents& events, const ChromeTraceInput& input, std::span<const HostSlice> slices, int device);

}  // namespace ridgeline

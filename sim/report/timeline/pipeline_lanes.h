// The lanes of a pipeline in a timeline: a process with a thread for each rank, a slice for each pass of a stage.
#pragma once

#include "sim/report/timeline/trace_events.h"
#include "sim/timeline/pipeline_timeline.h"

namespace ridgeline {

/// `process` is the number the lanes get in the trace.
void add_lanes(TraceEvents& events, const PipelineTimeline& pipeline, int process);

}  // namespace ridgeline

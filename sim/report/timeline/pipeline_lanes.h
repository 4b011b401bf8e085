// The lanes of a pipeline in a timeline: a process with a thread for each rank, a slice for each pass of a stage.
#pragma once

#include "sim/report/timeline/trace_events.h"
#include "sim/timeline/pipeline_timeline.h"

namespace ridgeline {

/// `process` is the number the lanes get in the trace.
void add_lanes(TraceEvents& events, const PipelineTimeline& pipeline, int process);

/// All kernels of all ranks but the one that is shown, a process each from `first_process` on. `stream`: number of the
/// default one.
void add_rank_kernels(TraceEvents& events, const PipelineTimeline& pipeline,
                      std::span<const StepProgram* const> classes, int first_process, int stream);

}  // namespace ridgeline

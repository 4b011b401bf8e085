// Critical path of a recorded step: the kernels, collectives, copies, host calls and waits that decide its time.
//
// The path is walked back from the item of the GPU that ended last. An item began behind the one before it on its
// stream, or behind an item of another stream that its stream waited for, or behind its launch call, whichever ended
// last. A launch call began behind all that the host did since it last waited for the GPU; the wait ended behind an
// item. Host time counts to the outermost operator around it, to a call of the runtime that takes long, or to Python.
#pragma once

#include <vector>

#include "sim/trace/profiler/profiler_events.h"
#include "sim/trace/profiler/profiler_steps.h"

namespace ridgeline::trace {

/// `items` are entries of `events.gpu` that belong to the step, `issued` holds for each of `events.gpu` when the host
/// issued it.
CriticalPath critical_path(const ProfilerEvents& events, const std::vector<std::size_t>& items,
                           const std::vector<double>& issued, const StepWindow& window);

}  // namespace ridgeline::trace

// Traces of several ranks in one file: put together so that they can be looked at side by side.
//
// A rank is a process with operators and launch calls. Numbers that lead from a kernel to its launch are those of a
// process, so ranks would be taken for one another: the first one is replayed, the others are left out.
#pragma once

#include <string>

#include "sim/trace/profiler/profiler_events.h"

namespace ridgeline::trace {

/// Leaves the events of the first rank in the file and counts all of them. Throws UserError where those of several
/// stand mixed, so that nothing says whose a kernel is; `path` stands for the file.
void keep_first_rank(ProfilerEvents& events, const std::string& path);

}  // namespace ridgeline::trace

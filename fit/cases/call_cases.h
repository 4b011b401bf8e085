// Launches of single calls (files of kind "calls"), each with the time of the kernel that the profiler saw.
#pragma once

#include "fit/law_problem.h"

namespace ridgeline::fit {

/// Adds the kernels of the classes that calls are read for, each beside the GPU that ran it: cold (the L2 swept before
/// the call) and warm, shapes held out by their hash. Throws UserError for a file that cannot be read.
void add_calls(const Measurements& measurements, const Laboratory& laboratory, Collected& collected);

}  // namespace ridgeline::fit

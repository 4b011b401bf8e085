// What happens inside the kernels of one op over time, as a Chrome trace (Perfetto, chrome://tracing).
//
// A kernel is a slice of thread 7 of process 0, as in the timeline of a step; counters beside it: occupancy and SMs at
// work, L2 hit rate, DRAM bandwidth. Microseconds from the start of the first kernel. Keys: docs/json.md.
#pragma once

#include <string>

#include "sim/study/kernel_prediction.h"

namespace ridgeline {

/// Kernels without a profile (engines that do not simulate) are slices alone.
std::string kernel_timeline(const KernelPrediction& prediction);

}  // namespace ridgeline

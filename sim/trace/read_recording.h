// Any file that holds a recorded training step, its kind found from its content: our op trace (JSON Lines), a trace of
// PyTorch's profiler, a PyTorch execution trace; plain or gzip.
#pragma once

#include <string>

#include "sim/trace/read_profiler_trace.h"
#include "sim/trace/replayable.h"

namespace ridgeline::trace {

/// Throws UserError with file, line and what is wrong: not JSON, JSON of another kind, cut off, sizes that cannot be.
Replayable read_recording(const std::string& path, const DeviceLookup& device);

std::string_view name_of(Format format);

}  // namespace ridgeline::trace

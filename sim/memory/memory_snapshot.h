// A predicted run as a memory snapshot of PyTorch, for the tools that show those (pytorch.org/memory_viz).
#pragma once

#include <string>

#include "sim/allocator/settings.h"
#include "sim/memory/memory_run.h"

namespace ridgeline {

/// The pickle of the dict that torch.cuda.memory._snapshot() returns: `segments` at the end of the run, `device_traces`
/// with each of its events, `allocator_settings`. `result` of run_memory with record_history. A frame names what was
/// running: `name` the op, `filename` its phase and block, `line` its entry of OpTrace::calls (0 where there is none);
/// `time_us` counts events, as memory alone knows no time. A run out of memory ends with the event `oom`.
std::string memory_snapshot(const StepProgram& program, const MemoryResult& result, const AllocatorSettings& settings);

}  // namespace ridgeline

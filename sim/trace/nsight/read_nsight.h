// A report of Nsight Systems, exported as SQLite, as the events of one process on one GPU.
//
// Tables and columns have come and gone between 2020 and 2025: each is read where it is there. Of several processes or
// GPUs the one whose GPU works longest is taken; the others' busy times stand beside it. Ranges of NVTX are operators
// where PyTorch's emit_nvtx wrote them, annotations otherwise; those that repeat and cover the work are steps.
#pragma once

#include <string>

#include "sim/trace/profiler/profiler_events.h"

namespace ridgeline::trace {

/// Throws UserError where the file is no database of Nsight Systems, is damaged, or nothing ran on a GPU in it.
ProfilerEvents read_nsight(const std::string& path, Defects& defects);

/// How a report that only NVIDIA's tools read becomes one for `replay`; empty for other names.
std::string how_to_export(const std::string& path);

}  // namespace ridgeline::trace

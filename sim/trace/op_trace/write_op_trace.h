// Op trace to JSON Lines, version 1 (docs/op-trace.md). Reading it back gives the same OpTrace, record for record.
#pragma once

#include <string>

#include "sim/trace/recording_info.h"

namespace ridgeline::trace {

std::string op_trace_lines(const RecordingInfo& info, const OpTrace& trace);

}  // namespace ridgeline::trace

// JSON Lines of version 1 (docs/op-trace.md) to an op trace. The same trace that was written comes back.
#pragma once

#include <string>
#include <string_view>

#include "sim/trace/recording_info.h"
#include "sim/trace/replayable.h"

namespace ridgeline::trace {

/// `source` stands for the file in messages. Throws UserError "source:line: what": not JSON, unknown version, kind or
/// name, missing or negative number, ids that do not exist.
Recording parse_op_trace(std::string_view text, const std::string& source);
/// The same from a file, plain or gzip.
Recording read_op_trace(const std::string& path);
/// With the dispatcher calls the operations came from, where the file holds those.
Replayable read_replayable_op_trace(const std::string& path);

}  // namespace ridgeline::trace

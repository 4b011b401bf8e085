// A replayed recording as text and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/answer/replay.h"
#include "sim/report/text/notes.h"

namespace ridgeline {

std::string replay_text(const std::string& file, const ReplayResult& result, Notes notes = Notes::folded);
/// The keys of predict's JSON, and what was measured beside them.
nlohmann::ordered_json replay_json(const std::string& file, const ReplayResult& result);

/// Null for a recording without times.
nlohmann::ordered_json critical_path_json(const trace::CriticalPath& path);

}  // namespace ridgeline

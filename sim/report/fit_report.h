// The largest batch that fits, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/study/fit.h"

namespace ridgeline {

/// `search_time`: how long the search took, shown beside its runs.
std::string fit_text(const FitResult& result, Seconds search_time);
/// Keys: docs/json.md.
nlohmann::ordered_json fit_json(const FitResult& result, Seconds search_time);

}  // namespace ridgeline

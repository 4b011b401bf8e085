// The points of a sweep: a table for people, CSV and JSON for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/study/sweep/sweep_point.h"

namespace ridgeline {

/// The answer to the goal, best first; without a goal, every point. At most `most_rows` rows.
std::string sweep_text(const Sweep& sweep, const std::vector<SweepPoint>& points, std::size_t most_rows);
/// A line a point: axes, then quantities in base units, fits, allowed, error. RFC 4180.
std::string sweep_csv(const Sweep& sweep, const std::vector<SweepPoint>& points);
/// Keys: docs/json.md.
nlohmann::ordered_json sweep_json(const Sweep& sweep, const std::vector<SweepPoint>& points);

}  // namespace ridgeline

// What a sweep knows of one point, and how it is written down: a line of JSON that reads back to the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "sim/study/sweep/sweep.h"

namespace ridgeline {

struct SweepPoint {
  std::uint64_t index = 0;  ///< in the grid
  bool fits = false;
  std::array<double, kMetrics> metrics{};
  std::string error;  ///< why it cannot run; then nothing else means anything
  [[nodiscard]] bool ran() const { return error.empty(); }
  [[nodiscard]] double operator[](Metric metric) const { return metrics[static_cast<std::size_t>(metric)]; }
  bool operator==(const SweepPoint&) const = default;
};

/// {"point":17,"fits":true,"step_time_s":…} or {"point":17,"error":"…"}.
nlohmann::ordered_json point_json(const SweepPoint& point);
/// Throws std::exception for what is no such object.
SweepPoint point_from_json(const nlohmann::json& json);

/// Fits, and keeps within the sweep's constraints.
bool is_allowed(const SweepPoint& point, const Sweep& sweep);
/// Entries of `points` that answer the sweep's goal, best first; a Pareto front is ordered by its first quantity.
std::vector<std::size_t> best_points(const std::vector<SweepPoint>& points, const Sweep& sweep);
/// The quantities that order them, the first one first; empty where nothing is looked for.
std::vector<Metric> ranked_by(const Sweep& sweep);

/// The best point of every value of one axis.
struct BestOfEach {
  std::size_t axis = 0;
  std::vector<std::optional<std::size_t>>
      points;  ///< entries by value of the axis; none where no point answers the goal
};
/// Of the axis `hardware` where it has several values, else of the first that has; nothing where none has, or where the
/// goal names no best one.
std::optional<BestOfEach> best_of_each(const std::vector<SweepPoint>& points, const Sweep& sweep);

}  // namespace ridgeline

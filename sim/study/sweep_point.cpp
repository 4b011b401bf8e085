#include "sim/study/sweep_point.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

namespace ridgeline {
namespace {

/// Smaller is better.
double cost(const SweepPoint& point, Metric metric) {
  return info_of(metric).more_is_better ? -point[metric] : point[metric];
}

/// At least as good in everything and better in something.
bool dominates(const SweepPoint& a, const SweepPoint& b, const std::vector<Metric>& of) {
  bool better = false;
  for (const Metric metric : of) {
    const double x = cost(a, metric), y = cost(b, metric);
    if (x > y) return false;
    better = better || x < y;
  }
  return better;
}

std::vector<std::size_t> front_of(const std::vector<SweepPoint>& points, std::vector<std::size_t> allowed,
                                  const std::vector<Metric>& of) {
  // In order of the first quantity (then the others), a point can only be dominated by one before it.
  std::sort(allowed.begin(), allowed.end(), [&](std::size_t i, std::size_t j) {
    for (const Metric metric : of) {
      const double x = cost(points[i], metric), y = cost(points[j], metric);
      if (x != y) return x < y;
    }
    return i < j;
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : allowed) {
    const bool dominated =
        std::any_of(front.begin(), front.end(), [&](std::size_t f) { return dominates(points[f], points[i], of); });
    if (!dominated) front.push_back(i);
  }
  return front;
}

}  // namespace

nlohmann::ordered_json point_json(const SweepPoint& point) {
  nlohmann::ordered_json json{{"point", point.index}};
  if (!point.ran()) {
    json["error"] = point.error;
    return json;
  }
  json["fits"] = point.fits;
  for (std::size_t i = 0; i < kMetrics; ++i) json[std::string(info_of(i).json_key)] = point.metrics[i];
  return json;
}

SweepPoint point_from_json(const nlohmann::json& json) {
  SweepPoint point;
  point.index = json.at("point").get<std::uint64_t>();
  if (json.contains("error")) {
    point.error = json.at("error").get<std::string>();
    if (point.error.empty()) throw std::invalid_argument("an error without a text");
    return point;
  }
  point.fits = json.at("fits").get<bool>();
  for (std::size_t i = 0; i < kMetrics; ++i) point.metrics[i] = json.at(std::string(info_of(i).json_key)).get<double>();
  return point;
}

bool is_allowed(const SweepPoint& point, const Sweep& sweep) {
  if (!point.ran() || !point.fits) return false;
  return std::all_of(sweep.constraints.begin(), sweep.constraints.end(), [&](const Constraint& c) {
    return (!c.below || point[c.metric] <= *c.below) && (!c.above || point[c.metric] >= *c.above);
  });
}

std::vector<std::size_t> best_points(const std::vector<SweepPoint>& points, const Sweep& sweep) {
  const auto needs_price = [&](Metric m) { return m == Metric::price || m == Metric::price_per_million; };
  const bool by_price =
      sweep.goal.kind == GoalKind::cheapest || std::any_of(sweep.goal.of.begin(), sweep.goal.of.end(), needs_price);
  std::vector<std::size_t> allowed;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!is_allowed(points[i], sweep)) continue;
    if (by_price && points[i][Metric::price] <= 0) continue;  // nobody knows what it costs
    if (points[i][Metric::samples_per_s] < sweep.goal.samples_per_s) continue;
    allowed.push_back(i);
  }
  switch (sweep.goal.kind) {
    case GoalKind::none: return {};
    case GoalKind::pareto: return front_of(points, std::move(allowed), sweep.goal.of);
    case GoalKind::fastest:
      std::stable_sort(allowed.begin(), allowed.end(), [&](std::size_t i, std::size_t j) {
        const SweepPoint &a = points[i], &b = points[j];
        if (a[Metric::tokens_per_s] != b[Metric::tokens_per_s])
          return a[Metric::tokens_per_s] > b[Metric::tokens_per_s];
        return a[Metric::step_time] < b[Metric::step_time];  // a recorded step need not say how much it does
      });
      break;
    case GoalKind::cheapest:
      std::stable_sort(allowed.begin(), allowed.end(), [&](std::size_t i, std::size_t j) {
        const SweepPoint &a = points[i], &b = points[j];
        if (a[Metric::price] != b[Metric::price]) return a[Metric::price] < b[Metric::price];
        return a[Metric::price_per_million] < b[Metric::price_per_million];
      });
      break;
  }
  constexpr std::size_t kRunnersUp = 10;
  allowed.resize(std::min(allowed.size(), kRunnersUp));
  return allowed;
}

}  // namespace ridgeline

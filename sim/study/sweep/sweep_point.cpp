#include "sim/study/sweep/sweep_point.h"

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

namespace {

/// Of those that are allowed and answer the goal, best first; a Pareto front whole.
std::vector<std::size_t> in_order(const std::vector<SweepPoint>& points, const Sweep& sweep) {
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
  if (sweep.goal.kind == GoalKind::pareto) return front_of(points, std::move(allowed), sweep.goal.of);
  const std::vector<Metric> ranking = ranked_by(sweep);
  if (ranking.empty()) return {};
  std::stable_sort(allowed.begin(), allowed.end(), [&](std::size_t i, std::size_t j) {
    for (const Metric metric : ranking) {
      const double x = cost(points[i], metric), y = cost(points[j], metric);
      if (x != y) return x < y;
    }
    return false;
  });
  return allowed;
}

}  // namespace

std::vector<Metric> ranked_by(const Sweep& sweep) {
  switch (sweep.goal.kind) {
    case GoalKind::none: return {};
    case GoalKind::pareto: return sweep.goal.of;
    case GoalKind::fastest:
      return {Metric::tokens_per_s, Metric::step_time};  // a recorded step need not say how much it does
    case GoalKind::cheapest: return {Metric::price, Metric::price_per_million};
  }
  return {};
}

std::vector<std::size_t> best_points(const std::vector<SweepPoint>& points, const Sweep& sweep) {
  std::vector<std::size_t> best = in_order(points, sweep);
  constexpr std::size_t kRunnersUp = 10;
  if (sweep.goal.kind != GoalKind::pareto) best.resize(std::min(best.size(), kRunnersUp));
  return best;
}

std::optional<BestOfEach> best_of_each(const std::vector<SweepPoint>& points, const Sweep& sweep) {
  if (sweep.goal.kind == GoalKind::none || sweep.goal.kind == GoalKind::pareto) return std::nullopt;
  const auto several = [](const SweepAxis& axis) { return axis.values.size() > 1; };
  auto axis = std::find_if(sweep.axes.begin(), sweep.axes.end(),
                           [&](const SweepAxis& one) { return one.name == "hardware" && several(one); });
  if (axis == sweep.axes.end()) axis = std::find_if(sweep.axes.begin(), sweep.axes.end(), several);
  if (axis == sweep.axes.end()) return std::nullopt;
  BestOfEach best{static_cast<std::size_t>(axis - sweep.axes.begin()), {}};
  best.points.resize(axis->values.size());
  for (const std::size_t i : in_order(points, sweep)) {
    auto& place = best.points[sweep.values_of(points[i].index)[best.axis]];
    if (!place) place = i;
  }
  return best;
}

}  // namespace ridgeline

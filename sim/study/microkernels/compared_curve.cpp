#include "sim/study/microkernels/compared_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/hierarchy/make_engine.h"
#include "sim/units/parse.h"

namespace ridgeline {
namespace {

/// Conditions that follow from the others, or that older results do not state.
constexpr std::array<std::string_view, 6> kDerived{"shared_bytes", "flops",    "operations",
                                                   "sweeps",       "together", "pinned"};

bool derived(const std::string& key, const ProbePoint& point) {
  if (std::find(kDerived.begin(), kDerived.end(), key) != kDerived.end()) return true;
  if (key == "blocks") return point.at.contains("sweeps");
  return key == "bytes" && (point.at.contains("reads") || point.at.contains("loads") || point.at.contains("stages"));
}

std::string label(const ProbePoint& point, const std::vector<const ProbePoint*>& all) {
  std::string text;
  for (const auto& [key, value] : point.at) {
    const bool differs = std::any_of(all.begin(), all.end(), [&, k = key, v = value](const ProbePoint* p) {
      return p->at.contains(k) && p->at.at(k) != v;
    });
    if (derived(key, point) || (!differs && all.size() > 1)) continue;
    text += (text.empty() ? "" : ", ") + (key == "bytes" ? to_string(Bytes{value})
                                                         : fmt::format("{} {:g}",
                                                                       key == "bytes_apart" ? "apart"
                                                                       : key == "type_bits" ? "bits"
                                                                                            : key,
                                                                       value));
  }
  return text.empty() ? "all" : text;
}

/// The point of another result under the same conditions (sizes as near as rounding makes them).
const ProbePoint* same_point(const ProbeResult* other, std::string_view curve, const ProbePoint& point) {
  const ProbeCurve* found = other ? other->find(curve) : nullptr;
  if (!found) return nullptr;
  for (const ProbePoint& p : found->points) {
    const bool same = std::all_of(point.at.begin(), point.at.end(), [&](const auto& condition) {
      const auto& [key, value] = condition;
      return !p.at.contains(key) || std::abs(p.at.at(key) - value) <= 1e-3 * value;
    });
    if (same) return &p;
  }
  return nullptr;
}

}  // namespace

std::vector<ComparedCurve> compare_microkernels(const MicrokernelEvidence& evidence) {
  std::vector<std::unique_ptr<TimingEngine>> engines;
  for (const char* name : kMicrokernelEngines) engines.push_back(make_engine(name, *evidence.gpu));
  std::vector<ComparedCurve> curves;
  for (const ProbeCurve& measured : evidence.shown->curves) {
    const auto kernels = microkernels();
    const auto kernel =
        std::find_if(kernels.begin(), kernels.end(), [&](const Microkernel& k) { return k.curve == measured.name; });
    if (kernel == kernels.end()) continue;
    std::vector<const ProbePoint*> points;
    for (const ProbePoint& point : measured.points)
      if (covers(*kernel, point, *evidence.gpu)) points.push_back(&point);
    if (points.empty()) continue;
    ComparedCurve& curve = curves.emplace_back();
    curve.kernel = &*kernel;
    curve.what = measured.what;
    curve.unit = measured.unit;
    for (const ProbePoint* point : points) {
      ComparedPoint& compared = curve.points.emplace_back();
      compared.at = label(*point, points);
      compared.point = *point;
      for (std::size_t e = 0; e < engines.size(); ++e)
        compared.predicted[e] = predict_microkernel(*kernel, *point, *evidence.gpu, *engines[e]).value;
      if (const ProbePoint* other = same_point(evidence.again, measured.name, *point)) compared.again = other->value;
      compared.seen =
          evidence.fitted && (kernel->every_point_seen || same_point(evidence.fitted, measured.name, *point));
    }
  }
  return curves;
}

}  // namespace ridgeline

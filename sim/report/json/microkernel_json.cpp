#include "sim/report/json/microkernel_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace ridgeline {
namespace {

using nlohmann::ordered_json;

/// What a curve is drawn along: the first of these of which there are several values; empty where there is none.
std::string along(const ComparedCurve& curve) {
  for (const char* name :
       {"n", "warps", "stages", "stride", "addresses", "reads", "bytes", "blocks", "type_bits", "load"}) {
    std::set<double> values;
    for (const ComparedPoint& p : curve.points)
      if (const auto found = p.point.at.find(name); found != p.point.at.end()) values.insert(found->second);
    if (values.size() > 1) return name;
  }
  return "";
}

ordered_json finite(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

ordered_json point_json(const ComparedPoint& p, const std::string& along) {
  ordered_json predicted = ordered_json::array();
  for (const double value : p.predicted) predicted.push_back(finite(value));
  const auto x = p.point.at.find(along);
  return {{"name", p.at},
          {"at", p.point.at},
          {"x", x == p.point.at.end() ? ordered_json(nullptr) : ordered_json(x->second)},
          {"measured", p.point.value},
          {"again", p.again ? ordered_json(*p.again) : ordered_json(nullptr)},
          {"spread", p.point.spread},
          {"seen", p.seen},
          {"predicted", std::move(predicted)}};
}

}  // namespace

ordered_json microkernels_json(const std::vector<MicrokernelEvidence>& evidence) {
  ordered_json all = ordered_json::array();
  for (const MicrokernelEvidence& one : evidence) {
    ordered_json curves = ordered_json::array();
    for (const ComparedCurve& curve : compare_microkernels(one)) {
      if (curve.points.empty()) continue;
      const std::string key = along(curve);
      ordered_json points = ordered_json::array();
      for (const ComparedPoint& p : curve.points) points.push_back(point_json(p, key));
      curves.push_back({{"name", curve.kernel->curve},
                        {"source", curve.kernel->source},
                        {"what", curve.what},
                        {"unit", curve.unit},
                        {"along", key},
                        {"points", std::move(points)}});
    }
    all.push_back({{"gpu", one.gpu->title},
                   {"device", one.shown->device_name},
                   {"date", one.shown->date},
                   {"engines", kMicrokernelEngines},
                   {"curves", std::move(curves)}});
  }
  return all;
}

}  // namespace ridgeline

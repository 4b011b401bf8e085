#include "sim/scenario/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "sim/scenario/prediction.h"

namespace ridgeline {

Gpu with_more(const Gpu& gpu, const HardwareKey& key, double factor) {
  Gpu more = gpu;
  const double now = key.get(gpu);
  double value = factor * now;
  if (key.kind == KeyKind::integer) value = std::max(now + 1.0, std::round(value));
  key.set(more, std::min(value, key.range.high));
  return more;
}

Sensitivity step_sensitivity(const Scenario& scenario, std::string_view engine, double factor) {
  const OpTrace trace = trace_of(scenario);
  Sensitivity result{step_time(trace, scenario, engine), {}, scenario.gpu.sm.count, 0, {}};
  for (const Resource resource : kResources) {
    Scenario changed = scenario;
    changed.gpu = with_more(scenario.gpu, resource, factor);
    changed.host = with_more(scenario.host, resource, factor);
    if (resource == Resource::sm_count) result.more_sms = changed.gpu.sm.count;
    result.note(resource, step_time(trace, changed, engine));
  }
  for (const HardwareKey& key : hardware_keys()) {
    if (!key.is_number() || key.get(scenario.gpu) == 0.0) continue;
    Scenario changed = scenario;
    changed.gpu = with_more(scenario.gpu, key, factor);
    result.keys.push_back({&key, result.time - step_time(trace, changed, engine)});
  }
  return result;
}

}  // namespace ridgeline

#include "sim/scenario/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "sim/scenario/changed_hardware.h"
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

Sensitivity step_sensitivity(const Scenario& asked, std::string_view engine, double factor) {
  const Scenario scenario = best_use(asked, engine);
  const Gpu& kernels_of = scenario.shipped_kernels ? *scenario.shipped : scenario.gpu;
  const OpTrace trace = trace_of(scenario);
  Sensitivity result{step_time(trace, scenario, engine), {}, scenario.gpu.sm.count, 0, {}};
  for (const Resource resource : kResources) {
    Scenario changed = scenario;
    changed.gpu = with_more(scenario.gpu, resource, factor);
    changed.host = with_more(scenario.host, resource, factor);
    if (resource == Resource::sm_count) result.more_sms = changed.gpu.sm.count;
    Seconds then = step_time(trace, changed, engine, &kernels_of);
    if (resource != Resource::host_speed) then = std::min(then, step_time(trace, changed, engine));
    result.note(resource, then);
  }
  for (const HardwareKey& key : hardware_keys()) {
    if (!key.is_number() || key.get(scenario.gpu) == 0.0) continue;
    Scenario changed = scenario;
    changed.gpu = with_more(scenario.gpu, key, factor);
    const Seconds then = std::min(step_time(trace, changed, engine, &kernels_of), step_time(trace, changed, engine));
    result.keys.push_back({&key, result.time - then});
  }
  return result;
}

}  // namespace ridgeline

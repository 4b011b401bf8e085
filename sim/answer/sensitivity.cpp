#include "sim/answer/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "sim/answer/step_run.h"

namespace ridgeline {

Gpu with_more(const Gpu& gpu, const HardwareKey& key, double factor) {
  Gpu more = gpu;
  const double now = key.get(gpu);
  double value = factor * now;
  if (key.kind == KeyKind::integer) value = std::max(now + 1.0, std::round(value));
  key.set(more, std::min(value, key.range.high));
  return more;
}

Sensitivity step_sensitivity(const StepRun& run, double factor) {
  const Scenario& scenario = run.scenario();
  Sensitivity result{run.timeline().step, {}, scenario.gpu.sm.count, 0, {}};
  // The step stays; the chip and the host under it change.
  const auto time_of = [&](const Scenario& changed) {
    run.go_on();
    return step_time(run.trace(), changed, run.engine());
  };
  for (const Resource resource : kResources) {
    Scenario changed = scenario;
    changed.gpu = with_more(scenario.gpu, resource, factor);
    changed.host = with_more(scenario.host, resource, factor);
    if (resource == Resource::sm_count) result.more_sms = changed.gpu.sm.count;
    result.note(resource, time_of(changed));
  }
  for (const HardwareKey& key : hardware_keys()) {
    if (!key.is_number() || key.get(scenario.gpu) == 0.0) continue;
    Scenario changed = scenario;
    changed.gpu = with_more(scenario.gpu, key, factor);
    result.keys.push_back({&key, result.time - time_of(changed)});
  }
  return result;
}

}  // namespace ridgeline

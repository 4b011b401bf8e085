#include "sim/scenario/sensitivity.h"

#include <algorithm>

#include "sim/scenario/changed_hardware.h"
#include "sim/scenario/prediction.h"

namespace ridgeline {

void Sensitivity::note(Resource resource, Seconds then) {
  Seconds gain = time - then;
  constexpr double kRounding = 1e-6;  // a step counts as settled when it changes by less (timeline.h)
  if (resource == Resource::sm_count || gain > -kRounding * time) gain = std::max(gain, Seconds{0.0});
  saved[static_cast<std::size_t>(resource)] = gain;
}

Sensitivity step_sensitivity(const Scenario& asked, std::string_view engine, double factor) {
  const Scenario scenario = best_use(asked, engine);
  const Gpu& kernels_of = scenario.shipped_kernels ? *scenario.shipped : scenario.gpu;
  const OpTrace trace = trace_of(scenario);
  Sensitivity result{step_time(trace, scenario, engine), {}, scenario.gpu.sm.count, 0};
  for (const Resource resource : kResources) {
    Scenario changed = scenario;
    changed.gpu = with_more(scenario.gpu, resource, factor);
    changed.host = with_more(scenario.host, resource, factor);
    if (resource == Resource::sm_count) result.more_sms = changed.gpu.sm.count;
    Seconds then = step_time(trace, changed, engine, &kernels_of);
    if (resource != Resource::host_speed) then = std::min(then, step_time(trace, changed, engine));
    result.note(resource, then);
  }
  return result;
}

}  // namespace ridgeline

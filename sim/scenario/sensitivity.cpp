#include "sim/scenario/sensitivity.h"

#include <algorithm>

#include "sim/scenario/prediction.h"

namespace ridgeline {

void Sensitivity::note(Resource resource, Seconds then) {
  const Seconds gain = time - then;
  saved[static_cast<std::size_t>(resource)] = gain;
}

Sensitivity step_sensitivity(const Scenario& scenario, std::string_view engine, double factor) {
  const OpTrace trace = trace_of(scenario);
  Sensitivity result{step_time(trace, scenario, engine), {}, scenario.gpu.sm.count, 0};
  for (const Resource resource : kResources) {
    Scenario changed = scenario;
    changed.gpu = with_more(scenario.gpu, resource, factor);
    changed.host = with_more(scenario.host, resource, factor);
    if (resource == Resource::sm_count) result.more_sms = changed.gpu.sm.count;
    result.note(resource, step_time(trace, changed, engine));
  }
  return result;
}

}  // namespace ridgeline

#include "sim/scenario/changed_hardware.h"

#include <algorithm>

#include "sim/scenario/prediction.h"
#include "sim/units/user_error.h"

namespace ridgeline {

Scenario best_use(const Scenario& scenario, std::string_view engine) {
  if (!scenario.shipped) return scenario;
  return best_use(scenario, trace_of(scenario), engine);
}

Scenario best_use(const Scenario& scenario, const OpTrace& trace, std::string_view engine) {
  if (!scenario.shipped) return scenario;
  Scenario best = scenario;
  Seconds least = step_time(trace, scenario, engine);
  const auto consider = [&](const Scenario& other) {
    try {
      const Seconds time = step_time(trace, other, engine);
      if (time < least) {
        least = time;
        best = other;
      }
    } catch (const UserError&) {  // a kernel that the chip of the file does not have
    }
  };
  Scenario as_shipped = scenario;
  as_shipped.shipped_kernels = true;
  consider(as_shipped);
  if (scenario.gpu.sm.count > scenario.shipped->sm.count) {
    as_shipped.gpu.sm.count = scenario.shipped->sm.count;
    as_shipped.idle_sms = scenario.gpu.sm.count - scenario.shipped->sm.count;
    consider(as_shipped);
  }
  return best;
}

}  // namespace ridgeline

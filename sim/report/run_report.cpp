#include "sim/report/run_report.h"

#include <nlohmann/json.hpp>

#include "sim/scenario/step_amount.h"
#include "sim/scenario/whole_run.h"

namespace ridgeline {

double tokens_of_run(const Scenario& scenario) {
  if (!scenario.run) return 0.0;
  const StepAmount amount = amount_of_step(scenario);
  return steps_of(*scenario.run, amount) * amount.tokens;
}

nlohmann::ordered_json run_json(const Scenario& scenario, const Prediction& prediction) {
  constexpr double kSecondsAnHour = 3600.0, kJoulesAKilowattHour = 3.6e6;
  const StepPrediction& step = prediction.step;
  const double steps = steps_of(*scenario.run, amount_of_step(scenario)), boards = boards_of_step(scenario);
  const double gpu_hours = steps * step.time.value() * boards / kSecondsAnHour;
  nlohmann::ordered_json json{{"steps", steps},
                              {"time_s", steps * step.time.value()},
                              {"low_s", steps * step.low.value()},
                              {"high_s", steps * step.high.value()},
                              {"gpu_hours", gpu_hours},
                              {"energy_kwh", steps * step.energy.energy.value() * boards / kJoulesAKilowattHour}};
  if (scenario.gpu.price_per_hour > 0.0) json["usd"] = gpu_hours * scenario.gpu.price_per_hour;
  return json;
}

}  // namespace ridgeline

// Steps, time and energy of a whole run of steps like the predicted one, for a scenario that has a `run`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/prediction.h"
#include "sim/scenario/scenario.h"

namespace ridgeline {

/// Tokens that all steps take; 0: the scenario has no run.
double tokens_of_run(const Scenario& scenario);
nlohmann::ordered_json run_json(const Scenario& scenario, const Prediction& prediction);

}  // namespace ridgeline

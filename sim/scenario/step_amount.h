// What one step of a scenario works on.
#pragma once

#include "sim/scenario/scenario.h"

namespace ridgeline {

/// 0: not known.
struct StepAmount {
  double samples = 0.0, tokens = 0.0;
};
StepAmount amount_of_step(const Scenario& scenario);

/// Boards that work on it together, each drawing power and costing rent. Of a recording, the one it was made on.
double boards_of_step(const Scenario& scenario);

}  // namespace ridgeline

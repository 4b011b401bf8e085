// Versions, switches and code paths that a scenario left to the defaults, where another one changes the step's time.
#pragma once

#include <string>
#include <vector>

#include "sim/answer/step_run.h"

namespace ridgeline {

/// One line for each default whose alternative takes at least 5 % more or less time, with the flag that sets it. Each
/// is tried by predicting it.
std::vector<std::string> assumptions_of(const StepRun& run);

}  // namespace ridgeline

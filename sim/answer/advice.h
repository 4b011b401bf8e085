// What would help: changes people make, each tried by predicting it.
#pragma once

#include <string>
#include <vector>

#include "sim/answer/step_run.h"

namespace ridgeline {

/// Those that save time, then those that save memory; none is assumed. A change that does not fit the device is left
/// out. Throws as StepRun does.
std::vector<Advice> find_advice(const StepRun& run);

}  // namespace ridgeline

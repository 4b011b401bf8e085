// What a tenth more of each resource gives, without asking it of every number of the chip: a dozen predictions where
// step_sensitivity makes some eighty.
//
// Tested by tests/serve/api_test.cpp.
#pragma once

#include "sim/answer/sensitivity.h"

namespace ridgeline {

/// As step_sensitivity(), whose `keys` are left empty.
Sensitivity resource_sensitivity(const StepRun& run, double factor = kSensitivityFactor);

}  // namespace ridgeline

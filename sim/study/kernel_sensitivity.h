// What a tenth more of each resource would give one kernel case (sim/answer/sensitivity.h says how it is meant).
#pragma once

#include <string_view>

#include "sim/answer/sensitivity.h"
#include "sim/study/kernel_prediction.h"

namespace ridgeline {

/// Throws as predict_kernel does. Host speed gives a kernel nothing.
Sensitivity kernel_sensitivity(const KernelCase& kernel, const Gpu& gpu, const Software& software,
                               std::string_view engine, double factor = kSensitivityFactor);

}  // namespace ridgeline

// What a step's time is made of: classes, limiters, kernels by what they cost, and what was approximated.
#pragma once

#include <span>

#include "sim/answer/prediction.h"

namespace ridgeline {

/// Fills shares, kernels, utilisation, latency and notes of `prediction`, whose step is known. `times` and `timeline`
/// have one entry a launch of the steady step.
void explain_step(Prediction& prediction, const StepProgram& program, std::span<const KernelTime> times,
                  const Timeline& timeline, const Gpu& gpu);

}  // namespace ridgeline

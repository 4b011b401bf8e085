// What would help: changes people make, each tried by predicting it.
#pragma once

#include <string>
#include <vector>

#include "sim/answer/step_run.h"

namespace ridgeline {

/// Operations of a run, beyond which changes are not tried: each of them takes as long as the prediction.
inline constexpr std::size_t kMostCallsToTry = 400'000;
/// Operations of a run, those of tokens that its trace does not write out too.
std::size_t calls_of_run(const OpTrace& trace);

/// Those that save time, then those that save memory; none is assumed. A change that does not fit the device is left
/// out, and all are of a run of more than kMostCallsToTry. Throws as StepRun does.
std::vector<Advice> find_advice(const StepRun& run);

}  // namespace ridgeline

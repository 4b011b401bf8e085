// A step whose micro-batches are padded to several lengths.
#pragma once

#include <cstdint>

#include "sim/answer/prediction.h"
#include "sim/scenario/scenario.h"

namespace ridgeline {

class StepRun;

/// The scenario with every sequence of that length.
Scenario with_one_length(const Scenario& scenario, std::int64_t length);

/// Makes of the step of the typical length, which `run` is of, the mean of the steps of all lengths, and of its range.
void spread_over_lengths(StepPrediction& step, const StepRun& run);

}  // namespace ridgeline

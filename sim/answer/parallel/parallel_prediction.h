// What several GPUs do together: communication by kind, exposed and hidden, efficiency, memory by class of ranks.
#pragma once

#include <optional>

#include "sim/answer/prediction.h"

namespace ridgeline {

class StepRun;

/// Nothing for one GPU.
std::optional<ParallelPrediction> parallel_prediction(const StepRun& run);

}  // namespace ridgeline

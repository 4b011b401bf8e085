// Times of the tokens that a run generates.
#pragma once

#include <optional>

#include "sim/answer/step_run.h"

namespace ridgeline {

/// Where text is generated: the first token takes a call of its own.
std::optional<Generation> generation_of(const StepRun& run);

}  // namespace ridgeline

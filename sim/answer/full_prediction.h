// A prediction with what other runs tell beside it: changed numbers that do not matter, advice, sensitivity.
#pragma once

#include "sim/answer/step_run.h"

namespace ridgeline {

/// What else is asked for. Each costs further runs.
struct Beside {
  bool advice = true;     ///< changes that save time or memory; those that make it fit where it does not
  bool would_fit = true;  ///< beside advice, the changes that together make it fit
  bool sensitivity = false;
  bool sensitivity_keys = true;    ///< of it, every number of the chip by itself
  bool memory_of_modules = false;  ///< where the step's memory is known
};

/// The prediction of `run` with notes on changed numbers that nothing reads and what is asked for. Throws as StepRun
/// does.
Prediction full_prediction(const StepRun& run, const Beside& beside);

}  // namespace ridgeline

// The `run` section of a scenario: how much is trained, for the time and the energy of all its steps.
#pragma once

#include <optional>

#include "sim/config/value.h"

namespace ridgeline {

struct StepAmount;

struct WholeRun {
  std::optional<double> steps, tokens, examples;  ///< one of them
  double epochs = 1.0;                            ///< passes over `examples`
  bool operator==(const WholeRun&) const = default;
};

/// Nothing where the key is not there.
std::optional<WholeRun> read_run(const config::Value& section);
/// Optimizer steps, the last one whole.
double steps_of(const WholeRun& run, const StepAmount& amount);

}  // namespace ridgeline

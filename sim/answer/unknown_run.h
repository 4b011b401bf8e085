// Runs on machines that nobody here measured: boards, clocks, builds of the software and the script's own code differ.
#pragma once

#include "sim/answer/prediction.h"
#include "sim/answer/ranges/residual_ranges.h"

namespace ridgeline {

/// The errors of published steps on such machines, independent of those of kernels: half-widths in the logarithm of
/// time add up by their squares. Equation: docs/model/ranges.md.
void widen(StepPrediction& step, const ResidualRanges::UnknownRuns& runs);

/// The same with the shipped errors, for a step whose host is not known (Host::known) and that no recording brings
/// along.
void widen_for_unknown_run(StepPrediction& step, const Scenario& scenario);

}  // namespace ridgeline

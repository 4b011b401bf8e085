#include "sim/answer/unknown_run.h"

#include <cmath>

#include "sim/answer/ranges/busy_range.h"

namespace ridgeline {

void widen(StepPrediction& step, const ResidualRanges::UnknownRuns& runs) {
  if (step.time <= Seconds{}) return;
  const auto farther = [&](Seconds end, double factor) {
    return std::exp(std::hypot(std::log(ratio(end, step.time)), std::log(factor)));
  };
  step.high = farther(step.high, runs.high) * step.time;
  if (step.low > Seconds{}) step.low = step.time / farther(step.low, runs.low);
}

void widen_for_unknown_run(StepPrediction& step, const Scenario& scenario) {
  if (!scenario.host.known && !scenario.recorded) widen(step, residual_ranges().unknown_runs());
}

}  // namespace ridgeline

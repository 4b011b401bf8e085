#include "sim/answer/lengths_of_batches.h"

#include <map>
#include <vector>

#include "sim/answer/step_run.h"

namespace ridgeline {

Scenario with_one_length(const Scenario& scenario, std::int64_t length) {
  Scenario one = scenario;
  one.lengths.reset();
  one.training.sequence_length = length;
  return one;
}

void spread_over_lengths(StepPrediction& step, const StepRun& run) {
  const Scenario& s = run.scenario();
  if (!s.lengths) return;
  const auto time_of = [&](std::int64_t length) {
    const StepRun one(run.session(), with_one_length(s, length), run.engine());
    return one.step_beside(s.host);
  };
  std::map<std::int64_t, int> lengths;
  const std::vector<std::int64_t> padded = padded_lengths(*s.lengths, s.training);
  for (const std::int64_t length : padded) ++lengths[length];
  Seconds sum{};
  for (const auto& [length, times] : lengths) sum += static_cast<double>(times) * time_of(length);
  const double factor = ratio(sum / static_cast<double>(padded.size()), time_of(s.training.sequence_length));
  for (Seconds* time : {&step.time, &step.low, &step.high}) *time = factor * *time;
}

}  // namespace ridgeline

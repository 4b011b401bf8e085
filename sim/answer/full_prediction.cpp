#include "sim/answer/full_prediction.h"

#include <fmt/format.h>

#include <utility>

#include "sim/answer/advice.h"
#include "sim/answer/assumptions.h"
#include "sim/answer/changes.h"
#include "sim/answer/resource_sensitivity.h"
#include "sim/answer/sensitivity.h"
#include "sim/answer/unread_changes.h"

namespace ridgeline {

Prediction full_prediction(const StepRun& run, const Beside& beside) {
  Prediction prediction = run.prediction();
  if (run.scenario().asked)
    for (const std::string& note : run.scenario().asked->notes) prediction.notes.push_back(note);
  prediction.unread = unread_changes(run);
  prediction.notes.insert(prediction.notes.end(), prediction.unread.begin(), prediction.unread.end());
  if (beside.advice) {
    const std::size_t calls = calls_of_run(run.trace());
    if (calls <= kMostCallsToTry)
      for (std::string& line : assumptions_of(run)) prediction.notes.push_back(std::move(line));
    prediction.advice = find_advice(run);
    if (calls > kMostCallsToTry)
      prediction.notes.push_back(fmt::format("changes were not tried: the run has {} operations", calls));
    if (!prediction.memory.fits && beside.would_fit)
      prediction.memory.would_fit = changes_that_make_it_fit(run.session(), run.scenario());
  }
  if (beside.sensitivity)
    prediction.sensitivity = beside.sensitivity_keys ? step_sensitivity(run) : resource_sensitivity(run);
  if (beside.memory_of_modules && knows_allocations(run.scenario()))
    add_memory(prediction.modules, run.every_token().program(), run.every_token().memory_run());
  return prediction;
}

}  // namespace ridgeline

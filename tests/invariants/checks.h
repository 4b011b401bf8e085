// What holds of every answer: numbers that are numbers, nothing that physics forbids, parts that add up.
#pragma once

#include <functional>

#include "sim/answer/step_run.h"
#include "tests/invariants/finding.h"
#include "tests/invariants/random_scenario.h"

namespace ridgeline::invariants {

/// Asks `run` for everything that a report tells and notes in `result` what is wrong with it.
void check_answer(const StepRun& run, const Question& question, CaseResult& result);

/// Draws questions until one is not refused and asks it; whatever else than a UserError `ask` throws is a finding.
CaseResult first_answered(const CaseOptions& options, int attempts, const std::function<Question()>& draw,
                          const std::function<void(const Question&, CaseResult&)>& ask);

}  // namespace ridgeline::invariants

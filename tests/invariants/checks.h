// What holds of every answer: numbers that are numbers, nothing that physics forbids, parts that add up.
#pragma once

#include <exception>

#include "sim/answer/step_run.h"
#include "tests/invariants/finding.h"
#include "tests/invariants/random_scenario.h"

namespace ridgeline::invariants {

/// Asks `run` for everything that a report tells and notes in `result` what is wrong with it.
void check_answer(const StepRun& run, const Question& question, CaseResult& result);

/// Notes that `question` ended in an exception that is no UserError.
void no_message(const std::exception& error, const Question& question, CaseResult& result);

}  // namespace ridgeline::invariants

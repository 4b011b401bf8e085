// Ways to train or use a network that a GPU does not hold, each predicted: fewer bits, 8-bit optimizer states, blocks
// that run again, adapters, more GPUs.
//
// Tested by tests/study/ladder_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/answer/step_run.h"

namespace ridgeline {

struct LadderRow {
  std::string label;
  bool adds = false;             ///< keeps the changes of the row above
  std::vector<std::string> own;  ///< changes of the row, without those above; as --set takes them
  std::vector<std::string> all;  ///< changes of the row with those above
  MemoryPrediction memory;
  std::optional<StepPrediction> step;  ///< where the step runs
};

/// Rows that the program accepts and that need less memory than what was asked, in the order in which people try them;
/// rows that add end with the first that surely fits. Empty for a recorded step and for a scenario that nobody asked
/// for in words. Rows are predicted in parallel, under the budget of the question.
std::vector<LadderRow> ladder_of(const StepRun& run);

}  // namespace ridgeline

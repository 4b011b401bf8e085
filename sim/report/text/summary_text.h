// The first answer: whether a step fits, how long it takes, what limits it and what would help, in at most 18 lines of
// 80 columns. prediction_text() has the rest.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/answer/prediction.h"
#include "sim/study/ladder.h"

namespace ridgeline {

inline constexpr std::size_t kSummaryLines = 18, kSummaryColumns = 80;

/// `ladder`: of a step that does not run; null where none was made. `run_tokens`: of a run to be told about; 0: none.
std::string summary_text(const Scenario& scenario, const Prediction& prediction, const std::vector<LadderRow>* ladder,
                         double run_tokens = 0.0);

/// A run of so many tokens: "15 B tokens: 3,663,000 steps, 98.0 days, 33.4 kWh, 1,234 USD". Throws UserError for a step
/// without tokens.
std::string run_words(const Scenario& scenario, const Prediction& prediction, double tokens);

/// The verdict, the time and the memory in one line, whatever its length.
std::string summary_line(const Scenario& scenario, const Prediction& prediction);

/// The rows of a ladder with their heading, at most `most` lines; a sentence where there is none.
std::string ladder_text(std::span<const LadderRow> ladder, std::size_t most);

}  // namespace ridgeline

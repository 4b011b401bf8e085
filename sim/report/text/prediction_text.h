// A prediction for people: tables of at most 100 columns, the reason next to the time.
#pragma once

#include <span>
#include <string>

#include "sim/answer/prediction.h"
#include "sim/report/text/notes.h"

namespace ridgeline {

/// One scenario in full.
std::string prediction_text(const Scenario& scenario, const Prediction& prediction, Notes notes = Notes::folded);

/// "what would help", or nothing.
std::string advice_text(const Prediction& prediction);

/// One scenario on several GPUs, a line each.
std::string prediction_table(const Scenario& scenario, std::span<const Prediction> predictions);

}  // namespace ridgeline

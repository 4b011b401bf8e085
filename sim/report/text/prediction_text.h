// A prediction for people: tables of at most 100 columns, the reason next to the time.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/answer/prediction.h"
#include "sim/report/text/notes.h"

namespace ridgeline {

/// One scenario in full.
std::string prediction_text(const Scenario& scenario, const Prediction& prediction, Notes notes = Notes::folded);

/// "what would help", or nothing.
std::string advice_text(const Prediction& prediction);

/// One scenario on several GPUs, a line each, below `title` (whole lines). `prices_per_hour`: USD of each GPU, which
/// add the price of a million tokens or samples and leave out the allocator's part of the memory; none where empty.
std::string prediction_table(std::string_view title, std::span<const Prediction> predictions,
                             std::span<const double> prices_per_hour = {});

}  // namespace ridgeline

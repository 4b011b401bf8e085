// Scenarios larger than any measured step: their times are extrapolated.
#pragma once

#include <string>
#include <vector>

#include "sim/answer/ranges/residual_ranges.h"
#include "sim/scenario/scenario.h"

namespace ridgeline {

/// A sentence for each quantity (GPUs, sequence length, micro-batch) of more than kBeyondMeasured times the largest of
/// measured steps. Recordings have none.
std::vector<std::string> beyond_measured(const Scenario& scenario, const ResidualRanges& ranges);

}  // namespace ridgeline

// Ranges of collectives (data/laws/collective_range.yaml): quantiles of what no fit saw.
#pragma once

#include "fit/law_table.h"
#include "sim/study/validation/measured_files.h"

namespace ridgeline::fit {

/// Sets every class to the quantiles of measured over predicted of its rows, to two digits.
void set_collective_ranges(const MeasurementIndex& index, LawTable& table);

/// What of the table is not as set_collective_ranges makes it. Empty when all is well.
std::vector<std::string> check_collective_ranges(const MeasurementIndex& index, const LawTable& table);

}  // namespace ridgeline::fit

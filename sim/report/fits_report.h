// The table of fits_table() for people, in at most 80 columns.
#pragma once

#include <span>
#include <string>

#include "sim/study/fits_table.h"

namespace ridgeline {

/// `scenario`: one of the cells', for the names of network, GPU and software and the length of a sequence.
std::string fits_text(const Scenario& scenario, std::span<const FitsRow> rows);

}  // namespace ridgeline

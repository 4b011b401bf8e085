// Gains by a tenth more of each resource, as a table.
#pragma once

#include <string>

#include "sim/answer/sensitivity.h"

namespace ridgeline {

/// Share of the step's time; 0 for a step without any.
double share_of(Seconds saved, const Sensitivity& sensitivity);

/// Most saved first.
std::string sensitivity_table(const Sensitivity& sensitivity);

}  // namespace ridgeline

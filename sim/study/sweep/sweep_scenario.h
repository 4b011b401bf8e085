// A point of a sweep as a scenario: what the axes' values change, and the files they name.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/descriptions.h"
#include "sim/study/sweep/sweep.h"

namespace ridgeline {

/// `values` has an entry of each axis. Throws UserError where they make no scenario.
SharedScenario scenario_of(const Sweep& sweep, const std::vector<std::size_t>& values, Descriptions& descriptions,
                           Remembered<HardwareSheet>& sheets);

/// Throws UserError where an axis has no value that can be read, with the first one's mistake.
void check_axes(const Sweep& sweep);

/// Descriptions and recordings that points of the sweep are read from, and the residuals their ranges come from;
/// absolute paths in ascending order. The sweep and its scenario are part of Sweep::fingerprint instead.
std::vector<std::string> files_of_sweep(const Sweep& sweep);

}  // namespace ridgeline

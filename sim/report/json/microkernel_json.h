// Measured curves of microkernels beside what the engines predict, for the lab.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "sim/study/microkernels/compared_curve.h"

namespace ridgeline {

/// A list of GPUs: {gpu, device, date, engines, curves: [{name, source, what, unit, along, points: [{name, at, x,
/// measured, again, spread, seen, predicted: [by engine]}]}]}. `along` is the condition that x is of; numbers in the
/// curve's unit; `again` and a prediction that an engine does not make are null.
nlohmann::ordered_json microkernels_json(const std::vector<MicrokernelEvidence>& evidence);

}  // namespace ridgeline

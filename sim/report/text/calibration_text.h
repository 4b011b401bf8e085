// What a calibration changed, as text: numbers of the file, and predictions that move.
#pragma once

#include <span>
#include <string>

#include "sim/hardware/hardware_sheet.h"
#include "sim/study/calibration/calibration.h"
#include "sim/study/calibration/calibration_effect.h"

namespace ridgeline {

/// `before` and `after` are the whole sheets, measured numbers over the base.
std::string calibration_text(const HardwareSheet& before, const HardwareSheet& after, const Calibration& calibration,
                             std::span<const MovedPrediction> moved);

}  // namespace ridgeline

// The notes of a prediction for people: a line for each kind with how often and its share of the GPU's time, worst
// first, or every single one.
#pragma once

#include <cstdint>
#include <string>

#include "sim/answer/replay.h"

namespace ridgeline {

enum class Notes : std::uint8_t { folded, all };

/// `replay`: the recording of which the prediction is, with what its reader met; null for a described step.
std::string notes_text(const Prediction& prediction, const ReplayResult* replay, Notes notes);

}  // namespace ridgeline

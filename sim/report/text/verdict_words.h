// The verdict in a line: does a step fit its device?
#pragma once

#include <string>

#include "sim/answer/memory_prediction.h"

namespace ridgeline {

/// "FITS: 12.50 of 40.00 GiB", "DOES NOT FIT: needs 153.77 GiB, 23.70 GiB are there, 130.07 GiB short".
std::string verdict_line(const MemoryPrediction& memory);

/// Bytes that the device lacks for the whole step; 0 where the step runs.
std::int64_t short_bytes(const MemoryPrediction& memory);

}  // namespace ridgeline

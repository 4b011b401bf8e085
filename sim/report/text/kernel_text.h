// A kernel case as text: its time, its kernels, and what a simulation saw inside them.
#pragma once

#include <string>
#include <string_view>

#include "sim/answer/ranges/residual_ranges.h"
#include "sim/study/kernel_prediction.h"

namespace ridgeline {

/// `title` heads it: the case as it was given. `reason`: why the range is an estimate (reason_of).
std::string kernel_text(std::string_view title, const KernelPrediction& prediction, const Range& range,
                        const std::string& reason);

}  // namespace ridgeline

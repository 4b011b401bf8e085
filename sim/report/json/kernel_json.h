// The "predicted" object of a kernel case.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/ranges/residual_ranges.h"
#include "sim/answer/sensitivity.h"
#include "sim/study/kernel_prediction.h"

namespace ridgeline {

/// What a simulation saw inside a kernel.
nlohmann::ordered_json profile_json(const KernelProfile& profile);

/// `reason`: why the range is an estimate (reason_of). `sensitivity` may be null.
nlohmann::ordered_json kernel_json(const KernelPrediction& prediction, const Range& range, const std::string& reason,
                                   const Sensitivity* sensitivity = nullptr);

}  // namespace ridgeline

// A prediction for programs. Key names are fixed; see docs/json.md.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/prediction.h"

namespace ridgeline {

nlohmann::ordered_json prediction_json(const Prediction& prediction);

}  // namespace ridgeline

// Gains by a tenth more of each resource, for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/sensitivity.h"

namespace ridgeline {

/// {"sm_count": {`key`: seconds times `scale`, "percent": of the time}, …} in the order of kResources.
nlohmann::ordered_json sensitivity_json(const Sensitivity& sensitivity, const char* key, double scale);

}  // namespace ridgeline

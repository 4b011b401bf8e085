// What a tenth more of each resource would give, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/answer/sensitivity.h"

namespace ridgeline {

/// A table, most saved first.
std::string sensitivity_table(const Sensitivity& sensitivity);

/// {"sm_count": {`key`: seconds times `scale`, "percent": of the time}, …} in the order of kResources.
nlohmann::ordered_json sensitivity_json(const Sensitivity& sensitivity, const char* key, double scale);

}  // namespace ridgeline

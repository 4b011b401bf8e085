// A comparison, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/study/comparison.h"

namespace ridgeline {

std::string comparison_text(const Comparison& comparison);
/// Keys: docs/json.md.
nlohmann::ordered_json comparison_json(const Comparison& comparison);

}  // namespace ridgeline

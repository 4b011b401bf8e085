// A memory plan in words and as JSON: the blocks that are kept, run again or sent to the host.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/study/plan/memory_plan.h"

namespace ridgeline {

std::string memory_plan_text(const Scenario& scenario, const MemoryPlan& plan);
nlohmann::ordered_json memory_plan_json(const MemoryPlan& plan);
/// The plan as --set takes it.
std::vector<std::string> memory_plan_keys(const MemoryPlan& plan);

}  // namespace ridgeline

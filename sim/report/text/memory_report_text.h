// Memory over a step, for people (a chart and tables of at most 100 columns) and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/memory/memory_report.h"

namespace ridgeline {

std::string memory_report_text(const MemoryReport& report);
/// Keys: docs/json.md.
nlohmann::ordered_json memory_report_json(const MemoryReport& report);

}  // namespace ridgeline

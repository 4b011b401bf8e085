// A profiler's table of sums as text and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/answer/kernel_table.h"

namespace ridgeline {

std::string kernel_table_text(const std::string& file, const KernelTable& table);
nlohmann::ordered_json kernel_table_json(const std::string& file, const KernelTable& table);

}  // namespace ridgeline

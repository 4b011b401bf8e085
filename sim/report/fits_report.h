// The table of fits_table() for people, in at most 80 columns, and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "sim/study/fits_table.h"

namespace ridgeline {

/// `scenario`: one of the cells', for the names of network, GPU and software and the length of a sequence.
std::string fits_text(const Scenario& scenario, std::span<const FitsRow> rows);

/// Keys in docs/json.md.
nlohmann::ordered_json fits_json(const Scenario& scenario, std::span<const FitsRow> rows);

}  // namespace ridgeline

// Files of --html.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/scenario/prediction.h"

namespace ridgeline::app {

/// What the page shows of a prediction of `scenario`.
nlohmann::ordered_json page_part_of(const std::string& title, const Scenario& scenario, const Prediction& prediction);

/// Writes the page of `parts` with `more` keys beside them (comparison or sweep; may be null). Whole or not at all.
void write_page(const std::string& path, const std::string& title, nlohmann::ordered_json parts,
                const nlohmann::ordered_json& more);

}  // namespace ridgeline::app

// Files of --html.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ridgeline::app {

/// The page of `parts` with `more` keys beside them (comparison or sweep; may be null).
std::string page_text(const std::string& title, nlohmann::ordered_json parts, const nlohmann::ordered_json& more);
/// Writes the page of `parts` with `more` keys beside them (comparison or sweep; may be null). Whole or not at all.
void write_page(const std::string& path, const std::string& title, nlohmann::ordered_json parts,
                const nlohmann::ordered_json& more);

}  // namespace ridgeline::app

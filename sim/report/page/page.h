// One self-contained HTML page: web/ bundled at build time, with the data in it. It loads nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ridgeline {

/// The page of `data`: title, parts (page_part each), and comparison or sweep where it is one of those. Throws
/// UserError where the program was built without npm and so has no page.
std::string page(const nlohmann::ordered_json& data);

}  // namespace ridgeline

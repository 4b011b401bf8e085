// The lab page and what belongs to it, bundled of web/ when the program was built.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ridgeline::serve {

struct Asset {
  std::string type;
  std::string_view text;  ///< empty where the program was built without npm's packages
};

/// Of "/", "/lab.js", "/lab.css"; nothing for other paths.
std::optional<Asset> asset(std::string_view path);

}  // namespace ridgeline::serve

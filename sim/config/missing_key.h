// The message of a key that is required and not there, so that whoever knows its flag can name it.
#pragma once

#include <string_view>

namespace ridgeline::config {

inline constexpr std::string_view kMissingKey = "missing; this key is required";

}  // namespace ridgeline::config

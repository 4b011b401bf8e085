// How deep JSON from outside may nest: the library that reads it goes down one call a level when it copies or prints.
#pragma once

#include <string_view>

namespace ridgeline {

inline constexpr int kDeepestJson = 64;

/// Throws UserError where `text` nests lists and objects more than kDeepestJson levels deep.
void check_json_depth(std::string_view text);

}  // namespace ridgeline

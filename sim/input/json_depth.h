// How deep JSON from outside may nest: the library that reads it goes down one call a level when it copies or prints.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline {

inline constexpr int kDeepestJson = 64;

/// The sentence for people in what nlohmann::json says of a text or value that it cannot take: "line 1, column 5:
/// invalid literal; last read: 'tru,'".
std::string json_mistake(std::string_view what);

/// Throws UserError where `text` nests lists and objects more than kDeepestJson levels deep.
void check_json_depth(std::string_view text);

}  // namespace ridgeline

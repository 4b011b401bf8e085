// Keys of the first part of a JSON or YAML document, which may be cut off anywhere: enough to tell kinds of files
// apart.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace ridgeline::recognition {

/// Dotted keys, at most kOutlineDepth steps deep, each with its text ("" for a list or mapping). "[]" is a step into a
/// list.
using Outline = std::map<std::string, std::string, std::less<>>;

inline constexpr int kOutlineDepth = 4;

/// True where the text begins as a JSON object or list does.
bool begins_as_json(std::string_view text);

/// Keys of the first JSON value; of a list those of its first element.
Outline json_outline(std::string_view text);

/// Keys of YAML in block style, by indentation, and of flow mappings on one line as far as the first step.
Outline yaml_outline(std::string_view text);

}  // namespace ridgeline::recognition

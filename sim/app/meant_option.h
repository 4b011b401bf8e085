// A mistyped option or command: the same thing spelled otherwise, or nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::app {

/// One of `known` that `given` spells otherwise: other letters' case or dashes, a beginning of one name alone, one slip
/// of the keyboard (two in eight letters or more). Empty where none is.
std::string same_spelled_otherwise(std::string_view given, const std::vector<std::string>& known);

/// The same of options ("--batch"), which other tools call otherwise too.
std::string meant_option(std::string_view given, const std::vector<std::string>& known);

}  // namespace ridgeline::app

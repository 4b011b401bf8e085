// A mistyped option: the same thing spelled otherwise or as other tools spell it, or nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::app {

/// "did you mean --batch?", "time and memory ... do not depend on it: leave it out", or empty. `known` are the options
/// of the command.
std::string meant_option(std::string_view given, const std::vector<std::string>& known);

}  // namespace ridgeline::app

// Colours of a report on a terminal: its title, the labels at the margin, what warns, what can be typed.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline {

/// `report` with escape sequences. It must not have any of its own (without_controls). Lines stay as wide as they are.
std::string coloured(std::string_view report);

}  // namespace ridgeline

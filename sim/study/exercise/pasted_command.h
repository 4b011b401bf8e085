// Commands of an exercise as they run from any folder.
#pragma once

#include <string>

namespace ridgeline {

/// With `scenarios/…` as the place of the shipped file where the present folder has none of that name, and `ridgeline`
/// as this program's file where the search path leads to another one or to none.
std::string pasted_anywhere(const std::string& command);

/// The command as a person reads it: `ridgeline` as it is called here (its place below the present folder where no
/// search path leads to it), never by an absolute path.
std::string shown_command(const std::string& command);

}  // namespace ridgeline

// The command as it was given, for pages that say what they are of.
#pragma once

#include <string>

namespace ridgeline::app {

/// Once, when the program begins.
void remember_command_line(int argc, const char* const* argv);
/// "ridgeline predict --set 'a=b c'": pasted into a shell it asks the same. Empty where nothing was remembered.
const std::string& command_line();

}  // namespace ridgeline::app

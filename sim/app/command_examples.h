// A command line of each command that a person can type as it stands, for help and for messages.
#pragma once

#include <string_view>

namespace ridgeline::app {

/// "ridgeline fits llama-3.1-8b rtx3090" of "fits"; empty for commands without one.
std::string_view command_example(std::string_view command);

}  // namespace ridgeline::app

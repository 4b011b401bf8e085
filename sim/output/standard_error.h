// Messages and progress for people. A standard error that cannot be written (full, closed) takes nothing from an
// answer: its errors are passed over.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace ridgeline {

/// Prints without controls (standard_output.h).
void print_message_text(std::string_view text);
/// Prints text that has no controls but the program's own, such as a line that is written over.
void print_message_as_it_is(std::string_view text);

template <typename... Arguments>
void print_message(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_message_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Puts a placeholder where standard input, output or error is closed, so that no file which is opened later becomes
/// one of them. Reading the placeholder of input and writing that of output fail, as they do without one.
void hold_standard_descriptors();

}  // namespace ridgeline

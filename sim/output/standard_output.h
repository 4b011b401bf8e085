// What a command prints. Every error of standard output becomes an OutputError, at the latest in finish_output().
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace ridgeline {

/// `text` as a terminal may show it: a title or a name from somebody's file must not move the cursor or change colours.
/// Control characters but the end of a line and the tabulator become ^[, ^G, <U+009B>, ...; bytes that are no UTF-8
/// become U+FFFD.
std::string without_controls(std::string_view text);

/// Prints it without controls. Throws OutputError when standard output does not take it.
void print_text(std::string_view text);
/// Prints text that has no controls but the program's own.
void print_as_it_is(std::string_view text);

template <typename... Arguments>
void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Hands over what is still held back, also of std::cout. Throws OutputError when that, or anything printed before,
/// was not taken.
void finish_output();

}  // namespace ridgeline

// UTF-8 (RFC 3629) in text from outside: files, requests, names on the command line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ridgeline {

/// Index of the first byte that begins no UTF-8 character; std::string_view::npos where all of `text` is UTF-8.
std::size_t first_not_utf8(std::string_view text);

/// `text` with U+FFFD in the place of each byte that is no part of a UTF-8 character.
std::string as_utf8(std::string_view text);

}  // namespace ridgeline

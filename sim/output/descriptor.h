// A file descriptor that is written until all is written.
#pragma once

#include <string_view>

namespace ridgeline {

/// Writes all of `text`; 0, or the errno of what went wrong.
int write_all(int descriptor, std::string_view text);

}  // namespace ridgeline

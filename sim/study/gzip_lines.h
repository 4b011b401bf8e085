// Lines of a text file, plain or gzip (told apart by content).
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ridgeline {

/// Calls `line` for each. Throws UserError when the file cannot be opened or the gzip data are damaged or cut off.
void for_each_line(const std::string& path, const std::function<void(std::string_view)>& line);

}  // namespace ridgeline

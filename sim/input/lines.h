// Lines of a text file, plain or gzip (told apart by content).
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace ridgeline {

inline constexpr std::size_t kLongestLine = std::size_t{64} << 20;  ///< bytes

/// Calls `line` for each that is not empty. Throws UserError for what TextSource refuses, for damaged or cut-off gzip
/// data (after the lines before the damage) and for a line longer than kLongestLine.
void for_each_line(const std::string& path, const std::function<void(std::string_view)>& line);

/// The same of plain text that somebody is still writing: each line is delivered as soon as it has come.
/// Throws UserError, which calls the text `name`, for gzip and for a line longer than kLongestLine.
void for_each_line(std::istream& in, const std::string& name, const std::function<void(std::string_view)>& line);

}  // namespace ridgeline

// Cells of a table as text: separated by a character, or in columns below a row of dashes.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ridgeline::trace {

using Cells = std::vector<std::string>;

/// Cells of a line with quotes as RFC 4180 has them.
Cells cells_of(std::string_view line, char separator);
/// The separator by which a line has most cells: comma, semicolon or tab.
char separator_of(std::string_view line);

/// Extents of columns by a row of dashes; empty where the line is none.
using Extents = std::vector<std::pair<std::size_t, std::size_t>>;
Extents extents_of(std::string_view dashes);
/// The last column takes the rest of the line.
Cells cells_within(std::string_view line, const Extents& extents);

/// "1,234.5", "12.3%", "1_000" or "1 000"; nothing for what is no number.
std::optional<double> number_in(std::string_view cell);

/// A heading in lower case without its unit, and the unit: "Total Time (ns)" is "total time" and "ns".
struct Heading {
  std::string name, unit;
};
Heading heading_of(std::string_view cell);

/// Seconds of a unit of time: "ns", "us", "msec"; nothing for what is none.
std::optional<double> seconds_of_unit(std::string_view unit);

/// Calls `line` with each line, empty ones too, and its number.
template <class Line>
void for_lines(std::string_view text, const Line& line) {
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.size(), text.find('\n'));
    line(text.substr(0, end), ++number);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
}

}  // namespace ridgeline::trace

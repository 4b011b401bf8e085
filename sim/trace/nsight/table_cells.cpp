#include "sim/trace/nsight/table_cells.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace ridgeline::trace {
namespace {

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

}  // namespace

Cells cells_of(std::string_view line, char separator) {
  Cells cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') cells.back() += line[i++];
    else if (c == '"') quoted = !quoted;
    else if (c == separator && !quoted) cells.emplace_back();
    else cells.back() += c;
  }
  for (std::string& cell : cells) cell = std::string(without_blanks(cell));
  return cells;
}

char separator_of(std::string_view line) {
  char best = ',';
  std::size_t most = 0;
  for (const char separator : {',', ';', '\t'})
    if (const std::size_t cells = cells_of(line, separator).size(); cells > most) most = cells, best = separator;
  return best;
}

Extents extents_of(std::string_view dashes) {
  Extents extents;
  if (dashes.find("--") == dashes.npos || dashes.find_first_not_of("- \t\r") != dashes.npos) return extents;
  for (std::size_t i = 0; i < dashes.size();) {
    const std::size_t begin = dashes.find('-', i);
    if (begin == dashes.npos) break;
    const std::size_t end = std::min(dashes.size(), dashes.find_first_not_of('-', begin));
    extents.emplace_back(begin, end);
    i = end;
  }
  return extents;
}

Cells cells_within(std::string_view line, const Extents& extents) {
  Cells cells;
  std::size_t from = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::size_t to = i + 1 < extents.size() ? extents[i].second : line.size();
    cells.emplace_back(from < line.size() ? without_blanks(line.substr(from, to - std::min(to, from)))
                                          : std::string_view{});
    from = to;
  }
  return cells;
}

std::optional<double> number_in(std::string_view cell) {
  std::string digits;
  for (const char c : without_blanks(cell))
    if (c != ',' && c != '_' && c != ' ' && c != '%' && c != '\'') digits += c;
  double number = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

Heading heading_of(std::string_view cell) {
  Heading heading;
  cell = without_blanks(cell);
  std::string lower;
  for (const char c : cell) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::size_t open = lower.find('('), close = lower.rfind(')');
  if (open != lower.npos && close != lower.npos && close > open) {
    heading.unit = std::string(without_blanks(std::string_view(lower).substr(open + 1, close - open - 1)));
    lower.resize(open);
  }
  heading.name = std::string(without_blanks(lower));
  return heading;
}

std::optional<double> seconds_of_unit(std::string_view unit) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ns", 1e-9},   {"nsec", 1e-9},    {"nsecond", 1e-9},   {"nanoseconds", 1e-9},  {"us", 1e-6},
      {"usec", 1e-6}, {"usecond", 1e-6}, {"\xc2\xb5s", 1e-6}, {"\xce\xbcs", 1e-6},    {"microseconds", 1e-6},
      {"ms", 1e-3},   {"msec", 1e-3},    {"msecond", 1e-3},   {"milliseconds", 1e-3}, {"s", 1.0},
      {"sec", 1.0},   {"second", 1.0},   {"seconds", 1.0}};
  for (const auto& [name, seconds] : kUnits)
    if (name == unit) return seconds;
  return std::nullopt;
}

}  // namespace ridgeline::trace

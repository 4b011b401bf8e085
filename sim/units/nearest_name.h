// The known name a misspelt one most likely meant, for error messages.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

/// Levenshtein distance of two names.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

/// The nearest of `known` to `given`: a name that contains it ("h200" in "nvidia-h200-sxm-141gb"), else the one with
/// the fewest letters to change. Empty when `known` is empty.
template <typename Range>
std::string nearest_name(std::string_view given, const Range& known) {
  constexpr std::size_t kAbbreviation = 3;  // shorter than this, anything contains it
  std::string best;
  std::size_t best_distance = static_cast<std::size_t>(-1);
  bool best_contains = false;
  for (const std::string_view name : known) {
    const bool contains = given.size() >= kAbbreviation && name.find(given) != std::string_view::npos;
    const std::size_t distance = edit_distance(given, name);
    if (contains < best_contains || (contains == best_contains && distance >= best_distance)) continue;
    best = std::string(name);
    best_distance = distance;
    best_contains = contains;
  }
  return best;
}

}  // namespace ridgeline

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

inline std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

/// Whether `given` abbreviates `name`, in small or capital letters: "A100" of "nvidia-a100-sxm4-80gb".
inline bool abbreviates(std::string_view given, std::string_view name) {
  constexpr std::size_t kAbbreviation = 3;  // shorter than this, anything contains it
  return given.size() >= kAbbreviation && in_small_letters(name).find(in_small_letters(given)) != std::string::npos;
}

/// The nearest of `known` to `given`: a name that it abbreviates, else the one with the fewest letters to change. Empty
/// when `known` is empty.
template <typename Range>
std::string nearest_name(std::string_view given, const Range& known) {
  std::string best;
  std::size_t best_distance = static_cast<std::size_t>(-1);
  bool best_contains = false;
  for (const std::string_view name : known) {
    const bool contains = abbreviates(given, name);
    const std::size_t distance = edit_distance(in_small_letters(given), in_small_letters(name));
    if (contains < best_contains || (contains == best_contains && distance >= best_distance)) continue;
    best = std::string(name);
    best_distance = distance;
    best_contains = contains;
  }
  return best;
}

}  // namespace ridgeline

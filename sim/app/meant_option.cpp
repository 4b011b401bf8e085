#include "sim/app/meant_option.h"

#include <algorithm>

#include "sim/scenario/short_flags.h"
#include "sim/units/nearest_name.h"

namespace ridgeline::app {
namespace {

/// Small letters and digits alone.
std::string bare(std::string_view text) {
  std::string out;
  for (const char c : in_small_letters(text))
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  return out;
}

/// Letters that are wrong, missing or too many; two that changed places are one slip.
std::size_t slips(std::string_view a, std::string_view b) {
  const std::size_t distance = edit_distance(a, b);
  if (a.size() != b.size() || distance != 2) return distance;
  const auto at = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
  const bool swapped =
      at + 1 < a.size() && a[at] == b[at + 1] && a[at + 1] == b[at] && a.substr(at + 2) == b.substr(at + 2);
  return swapped ? 1 : 2;
}

}  // namespace

std::string same_spelled_otherwise(std::string_view given, const std::vector<std::string>& known) {
  constexpr std::size_t kShortest = 4, kLong = 8;
  const std::string mine = bare(given);
  for (const std::string& name : known)
    if (bare(name) == mine) return name;
  if (mine.size() < kShortest) return "";
  std::vector<std::string> begun;
  for (const std::string& name : known)
    if (bare(name).starts_with(mine)) begun.push_back(name);
  if (begun.size() == 1) return begun.front();
  std::string nearest;
  std::size_t least = mine.size() < kLong ? 2 : 3;
  for (const std::string& name : known)
    if (const std::size_t count = slips(mine, bare(name)); count < least) {
      nearest = name;
      least = count;
    }
  return nearest;
}

std::string meant_option(std::string_view given, const std::vector<std::string>& known) {
  const std::string mine = bare(given);
  for (const ShortFlag& flag : short_flags()) {
    if (std::find(known.begin(), known.end(), flag.flag) == known.end()) continue;
    for (std::string_view rest = flag.other_spellings; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (bare(rest.substr(0, end)) == mine) return std::string(flag.flag);
      rest.remove_prefix(std::min(rest.size(), end + 1));
    }
  }
  return same_spelled_otherwise(given, known);
}

}  // namespace ridgeline::app

#include "sim/units/meant_name.h"

#include <algorithm>

#include "sim/units/nearest_name.h"

namespace ridgeline {
namespace {

bool is_numeral(char c) { return c >= '0' && c <= '9'; }
bool is_small_letter(char c) { return c >= 'a' && c <= 'z'; }

/// Small letters and digits alone.
std::string bare(std::string_view text) {
  std::string out;
  for (const char c : in_small_letters(text))
    if (is_small_letter(c) || is_numeral(c)) out += c;
  return out;
}

std::string digits_of(std::string_view text) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out), is_numeral);
  return out;
}

/// " amp fp16 ": words between blanks, so that a name of some of them is a part of the text.
std::string in_words(std::string_view text) {
  std::string out = " ";
  for (const char c : in_small_letters(text)) {
    if (is_small_letter(c) || is_numeral(c)) out += c;
    else if (out.back() != ' ') out += ' ';
  }
  return out.back() == ' ' ? out : out + ' ';
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

bool are_swapped(const std::string& a, const std::string& b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

template <typename Fits>
std::string only_one(const std::vector<std::string>& known, const Fits& fits) {
  std::string found;
  for (const std::string& name : known) {
    if (!fits(name)) continue;
    if (!found.empty() && found != name) return "";
    found = name;
  }
  return found;
}

/// The name with the fewest slips, at most `most`, and with the same digits.
std::string fewest_slips(const std::string& mine, const std::vector<std::string>& known, std::size_t most) {
  std::string nearest;
  for (const std::string& name : known) {
    const std::string other = bare(name);
    if (digits_of(other) != digits_of(mine)) continue;
    if (const std::size_t count = slips(mine, other); count <= most) {
      nearest = name;
      if (count == 0) break;
      most = count - 1;
    }
  }
  return nearest;
}

}  // namespace

std::string meant_name(std::string_view given, const std::vector<std::string>& known) {
  constexpr std::size_t kShortest = 3, kMisspelt = 4, kLong = 8;
  const std::string mine = bare(given);
  for (const std::string& name : known)
    if (bare(name) == mine) return name;
  if (mine.size() < kShortest) return "";
  if (std::string name = fewest_slips(mine, known, 1);
      !name.empty() && (mine.size() >= kMisspelt || bare(name).size() > mine.size() || are_swapped(mine, bare(name))))
    return name;
  if (std::string name = only_one(known, [&](const std::string& one) { return bare(one).starts_with(mine); });
      !name.empty())
    return name;
  const std::string words = in_words(given);
  if (std::string name = only_one(known, [&](const std::string& one) { return in_words(one).find(words) != one.npos; });
      !name.empty())
    return name;
  return mine.size() < kLong ? "" : fewest_slips(mine, known, 2);
}

std::string meant_value(std::string_view given, const std::vector<std::string>& known) {
  if (std::string name = meant_name(given, known); !name.empty()) return name;
  constexpr std::size_t kShortest = 3;
  const std::string words = in_words(given);
  std::string longest;
  for (const std::string& name : known)
    if (name.size() >= kShortest && name.size() > longest.size() && words.find(in_words(name)) != words.npos)
      longest = name;
  return longest;
}

std::string some_names(const std::vector<std::string>& names) {
  constexpr std::size_t kSaid = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kSaid, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kSaid) text += " or one of " + std::to_string(names.size() - kSaid) + " more";
  return text;
}

std::string expected_names(std::string_view given, const std::vector<std::string>& known) {
  const std::string meant = meant_name(given, known);
  return (meant.empty() ? "expected one of " : "did you mean " + meant + "? Allowed: ") + some_names(known);
}

}  // namespace ridgeline

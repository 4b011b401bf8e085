#include "sim/units/spelling.h"

#include <algorithm>

#include "sim/units/nearest_name.h"

namespace ridgeline {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80; }

bool among(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> counted_parts(std::string_view name, const SpellingRules& rules) {
  std::vector<std::string> parts = name_parts(name);
  std::vector<std::string> counted;
  for (const std::string& part : parts)
    if (!among(part, rules.vendors)) counted.push_back(part);
  if (rules.any_order)  // "80g" of memory is "80gb"
    for (std::size_t i = 1; i < counted.size(); ++i)
      if (counted[i] == "g" && is_digit(counted[i - 1].front())) counted[i] = "gb";
  return counted;
}

/// Shorter words are others as soon as a letter is added or lost.
constexpr std::size_t kLongWord = 5;

bool is_swapped(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  const std::size_t at = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
  return at + 1 < a.size() && a[at] == b[at + 1] && a[at + 1] == b[at] && a.substr(at + 2) == b.substr(at + 2);
}

bool is_misspelt(std::string_view a, std::string_view b) {
  if (is_digit(a.front()) || is_digit(b.front())) return false;
  if (is_swapped(a, b)) return true;
  if (a.front() != b.front()) return false;  // mbert is no slip of bert
  const std::size_t longer = std::max(a.size(), b.size());
  return std::min(a.size(), b.size()) + 1 == longer && longer >= kLongWord && edit_distance(a, b) == 1;
}

/// Words as they stand between blanks and punctuation, in small letters.
std::vector<std::string> whole_words(std::string_view name, const SpellingRules& rules) {
  std::vector<std::string> words(1);
  for (const char c : in_small_letters(name)) {
    if (is_digit(c) || is_letter(c)) words.back() += c;
    else if (!words.back().empty()) words.emplace_back();
  }
  std::erase_if(words, [&](const std::string& word) { return word.empty() || among(word, rules.vendors); });
  return words;
}

bool among_words(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// "80gb", "pcie", "sxm4": the memory and the form of one GPU. The s of an L40S makes another GPU of an L40.
bool is_variant(const std::string& word) {
  return (is_digit(word.front()) && word.ends_with("gb")) || word == "pcie" || word.starts_with("sxm");
}

}  // namespace

std::vector<std::string> name_parts(std::string_view name) {
  std::vector<std::string> parts;
  const std::string small = in_small_letters(name);
  char before = ' ';
  for (std::size_t i = 0; i < small.size(); ++i) {
    const char c = small[i];
    const bool point = c == '.' && is_digit(before) && i + 1 < small.size() && is_digit(small[i + 1]);
    if (is_digit(c) || point) {
      if (!is_digit(before) && before != '.') parts.emplace_back();
      parts.back() += c;
    } else if (is_letter(c)) {
      if (!is_letter(before)) parts.emplace_back();
      parts.back() += c;
    }
    before = c == '.' && !point ? ' ' : c;
  }
  return parts;
}

std::string spelling_key(std::string_view name, const SpellingRules& rules) {
  std::vector<std::string> parts = counted_parts(name, rules);
  if (rules.any_order) std::sort(parts.begin(), parts.end());
  std::string key;  // "deepseek-v3" and "DeepSeekV3" differ in a blank between letters
  for (const std::string& part : parts)
    key += (!key.empty() && is_digit(key.back()) && is_digit(part.front()) ? " " : "") + part;
  std::replace(key.begin(), key.end(), '.', ' ');
  return key;
}

std::string without_ending(std::string_view name, const SpellingRules& rules) {
  const std::string small = in_small_letters(name);
  const auto has_number = [](std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  for (const std::string_view ending : rules.endings)
    if (small.size() > ending.size() + 1 && small.ends_with(ending) &&
        !is_letter(small[small.size() - ending.size() - 1]) &&
        (ending != "base" || has_number(small.substr(0, small.size() - ending.size()))))  // else it is a size
      return std::string(name.substr(0, name.size() - ending.size() - 1));
  return "";
}

bool shortens(std::string_view given, std::string_view name, const SpellingRules& rules) {
  std::vector<std::string> some = counted_parts(given, rules);
  const std::vector<std::string> all = counted_parts(name, rules);
  if (some.empty() || some.size() >= all.size()) return false;
  if (!rules.any_order) return std::equal(some.begin(), some.end(), all.begin());
  const std::vector<std::string> words = whole_words(name, rules);
  some = whole_words(given, rules);
  return std::all_of(some.begin(), some.end(), [&](const std::string& word) { return among_words(word, words); }) &&
         std::all_of(words.begin(), words.end(),
                     [&](const std::string& word) { return among_words(word, some) || is_variant(word); });
}

bool misspells(std::string_view given, std::string_view name, const SpellingRules& rules) {
  const std::vector<std::string> a = counted_parts(given, rules), b = counted_parts(name, rules);
  if (a.size() != b.size()) return false;
  std::size_t misspelt = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (!is_misspelt(a[i], b[i])) return false;
    ++misspelt;
  }
  return misspelt == 1;
}

}  // namespace ridgeline

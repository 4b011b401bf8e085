// Lists of words in one string: "add mul scale".
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace ridgeline {

/// Calls `visit` with each word between separators.
template <typename Visit>
void for_each_word(std::string_view text, std::string_view separator, Visit&& visit) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(word.size() + separator.size(), text.size()));
    visit(word);
  }
}

/// As many words as the array has places; any other number does not compile.
template <std::size_t Count>
consteval std::array<std::string_view, Count> split_words(std::string_view text) {
  std::array<std::string_view, Count> words;
  for (std::string_view& word : words) {
    std::size_t length = 0;  // counted by hand: find() is no constant to g++ 12 with sanitizers
    while (length < text.size() && text[length] != ' ') ++length;
    if (length == 0) throw "fewer words than places";
    word = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  if (!text.empty()) throw "more words than places";
  return words;
}

}  // namespace ridgeline

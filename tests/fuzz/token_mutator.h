// Changes of text by whole tokens: words, numbers, quoted strings, signs and ends of lines, as YAML and JSON have them.
#pragma once

#include <deque>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

/// The text in order, nothing left out: blanks between tokens are tokens too.
std::vector<std::string_view> tokens_of(std::string_view text);

/// Remembers tokens of the texts it changes, and puts those of one into another.
class TokenMutator {
 public:
  /// One to five changes: tokens replaced (by one of another text, by a number at a border of what numbers can be),
  /// left out, repeated, exchanged; lines repeated and left out; brackets put around.
  std::string changed(std::string_view text, std::mt19937_64& random);

 private:
  void learn(const std::vector<std::string_view>& tokens, std::mt19937_64& random);
  void change_once(std::vector<std::string_view>& tokens, std::mt19937_64& random);

  std::vector<std::string> known_;
  std::deque<std::string> made_;  ///< tokens of the change at hand that stand in no text
};

}  // namespace ridgeline

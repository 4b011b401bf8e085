// Words of other tools and the keys of this one, so that a message names the key that a person meant.
//
// Tested by tests/config/other_words_test.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::config {

struct OtherWord {
  std::string_view words;  ///< as they are spelled elsewhere, a space between two; case and punctuation do not count
  std::string_view key;    ///< dotted, from the root of the document; or "--explain" of a command; empty: there is none
  std::string_view value{};  ///< of the key, where the word says it: --bf16
};

std::span<const OtherWord> other_words();

/// The row that has the word; null where none has it.
const OtherWord* other_word(std::string_view word);

/// The value of `key` (its last part) that a word means: "float16" of precision is amp-fp16. Empty where unknown.
std::string_view other_value(std::string_view key, std::string_view word);

/// The fix for a key that a section at `path` does not know; its own keys are `known`.
std::string unknown_key_fix(const std::string& path, const std::string& given, const std::vector<std::string>& known);

inline constexpr std::string_view kWithoutEffect = "time and memory of a step do not depend on it: leave it out";

}  // namespace ridgeline::config

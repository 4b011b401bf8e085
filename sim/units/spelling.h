// Names compared as people spell them: case, blanks and punctuation do not tell two names apart.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

/// Runs of letters and of digits, in small letters; a point between digits belongs to their run. "Llama-3.1:8B" gives
/// llama, 3.1, 8, b.
std::vector<std::string> name_parts(std::string_view name);

struct SpellingRules {
  std::span<const std::string_view> vendors;  ///< words that may be left out anywhere: "nvidia"
  std::span<const std::string_view> endings;  ///< words that may follow a name without changing it: "instruct"
  bool any_order = false;                     ///< "A100 80GB PCIe" is "a100-pcie-80gb"
};

/// The parts that count, in one text: equal for two spellings of one name. Only numbers are kept apart.
std::string spelling_key(std::string_view name, const SpellingRules& rules);

/// The name without the last of `rules.endings`; empty when the name has none.
std::string without_ending(std::string_view name, const SpellingRules& rules);

/// True where `given` names `name` incompletely: "llama3" of "llama-3-8b"; with `any_order`, all but memory and form:
/// "a100" of "nvidia-a100-pcie-40gb".
bool shortens(std::string_view given, std::string_view name, const SpellingRules& rules);

/// Whether `given` is `name` with letters doubled, lost or swapped. Digits are never misspelt, and no letter stands for
/// another one: llava-7b is not llama-7b.
bool misspells(std::string_view given, std::string_view name, const SpellingRules& rules);

}  // namespace ridgeline

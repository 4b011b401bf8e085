// The known name that a misspelt one meant, for error messages: the same thing spelled otherwise, never another thing.
//
// Tested by tests/units/meant_name_test.cpp.
#pragma once

#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

/// The one of `known` that differs in case or punctuation, that `given` begins alone, of which it is a word, or that
/// has one letter more, less or swapped (two in long names). Digits are never misspelt: fp8 is not fp32. Empty where
/// none is near.
std::string meant_name(std::string_view given, const std::vector<std::string>& known);

/// Like meant_name, also where `given` has words more than a known name: adamw_torch_fused is adamw.
std::string meant_value(std::string_view given, const std::vector<std::string>& known);

/// "a, b, c", at most eight names: "a, b ... or one of 12 more".
std::string some_names(const std::vector<std::string>& names);

/// "did you mean b? Allowed: a, b, c" where a name is near, else "expected one of a, b, c".
std::string expected_names(std::string_view given, const std::vector<std::string>& known);

template <typename Range>
std::string meant_name(std::string_view given, const Range& known) {
  return meant_name(given, std::vector<std::string>(std::begin(known), std::end(known)));
}

template <typename Range>
std::string expected_names(std::string_view given, const Range& known) {
  return expected_names(given, std::vector<std::string>(std::begin(known), std::end(known)));
}

}  // namespace ridgeline

// GPUs, clusters and networks told apart by their names, for a name that was given where another kind is expected.
//
// Tested by tests/scenario/named_kind_test.cpp.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline {

/// "hardware", "cluster" or "model" (the keys that take the name), in any spelling; empty for other words and paths.
std::string key_of_name(std::string_view name);

/// "h100 is a GPU: hardware: h100, or --hardware h100" where `name` is of another kind than `key` takes; else empty.
std::string other_kind(std::string_view key, std::string_view name);

/// The same where `word` stands in the place of a file that is not there; a Python script likewise. Empty for other
/// words.
std::string no_file_but(const std::string& word);

/// "a GPU" of "hardware".
std::string_view kind_words(std::string_view key);

}  // namespace ridgeline

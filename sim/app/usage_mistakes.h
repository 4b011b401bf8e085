// Mistakes of a command line in words: what is wrong, then what to type.
//
// Tested by tests/app/mistakes_test.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace ridgeline::app {

/// A command that there is not, an option before the command, "-model" for --model; empty where there is none of them.
std::string mistake_before_parsing(const CLI::App& program, const std::vector<std::string>& words);

/// The message of CLI11's `error`.
std::string mistake_of(const CLI::App& program, const CLI::ParseError& error);

}  // namespace ridgeline::app

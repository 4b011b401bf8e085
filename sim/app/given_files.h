// Files of a command line and what each is given as, so that a mistake in one can say what the file is.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace ridgeline::app {

/// A sentence about the first file of the command line that its command or option does not take; "" where there is
/// none. A file that `message` begins with, named by another file, is looked at, too.
std::string wrong_file_given(const CLI::App& program, const std::vector<std::string>& words,
                             const std::string& message);

}  // namespace ridgeline::app

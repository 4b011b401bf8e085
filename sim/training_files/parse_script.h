// Settings that stand in scripts: arguments of a launch line, and assignments of a Python file. Nothing is run.
#pragma once

#include <string_view>

#include "sim/config/node.h"

namespace ridgeline::training_files {

/// `--name value ...` and `--name=value` of a shell script, wherever they stand (lines joined by backslashes, arrays of
/// bash); variables that the script sets to plain texts are put in, `$((...))` of their products and quotients too.
/// Names get dashes for underscores; one without a value is "true". The last of several with one name counts.
config::Node parse_arguments(std::string_view text, std::string_view name);

/// `name = literal` at the beginning of lines: numbers and products of them, texts, True, False, None. Other lines are
/// left out.
config::Node parse_assignments(std::string_view text, std::string_view name);

}  // namespace ridgeline::training_files

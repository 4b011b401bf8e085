// Names to files of hw/, and the measured section laid over the base.
#pragma once

#include <string>
#include <string_view>

#include "sim/config/node.h"
#include "sim/units/spelling.h"

namespace ridgeline {

/// Whether a description was given by its path, with a '/' or ending in .yaml, and not by its name in hw/.
bool names_a_path(std::string_view name_or_path);

/// How names of GPUs are spelled: vendors and order do not tell them apart.
const SpellingRules& hardware_spelling();

/// "hw" + `folder` + NAME.yaml, where `name_or_path` is any spelling of NAME or of an alias in its file, or the path
/// itself. Throws ConfigError naming `what` ("hardware") and the names that may be meant.
std::string described_file(std::string_view what, std::string_view folder, std::string_view name_or_path);

/// Replaces every field ({value: ..., ...}) of `base` that `changes` has too; inserts the others, for the reader to
/// report.
void lay_over(config::Node& base, const config::Node& changes);

}  // namespace ridgeline

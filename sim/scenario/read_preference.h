// The key `training.preference`: training on pairs of answers.
#pragma once

#include <optional>

#include "sim/config/value.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Nothing where the key is not there or is none.
std::optional<PreferenceDescription> read_preference(const config::Value& value);
/// Throws ConfigError for what it does not go with, once the rest of the section is read.
void check_preference(const config::Mapping& mapping, const TrainingDescription& t, bool compile);

}  // namespace ridgeline

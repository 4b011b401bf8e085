// Messages for required keys that are not there: what to write into the file, and the flag that says the same.
#pragma once

#include "sim/config/config_error.h"
#include "sim/scenario/scenario.h"

namespace ridgeline {

inline constexpr const char* kTheFlags = "the flags";  ///< the place of a question without a file

/// Throws the message with the fix where `error` is of a missing key that has a short flag; returns for other errors.
void tell_missing(const config::ConfigError& error, const ScenarioSource& source);

}  // namespace ridgeline

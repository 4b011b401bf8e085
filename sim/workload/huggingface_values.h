// Values of a config.json in the words of a description.
#pragma once

#include <string>

#include "sim/config/node.h"
#include "sim/config/value.h"

namespace ridgeline {

/// A value after a table of words; each of a list, or of words joined by |. Throws config::ConfigError.
config::Node translated(const config::Value& value, const config::Value& values);
/// A list of what each letter of a text means.
config::Node spelled(const config::Value& value, const config::Value& letters);

}  // namespace ridgeline

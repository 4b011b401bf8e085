// The keys of a composition of blocks: one table of what YAML accepts, for the main stack and, under `encoder`, for the
// encoder.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/config/value.h"
#include "sim/workload/composition.h"
#include "sim/workload/model_keys.h"

namespace ridgeline {

struct CompositionKey {
  std::string_view name;
  std::string_view meaning;  ///< a few words, and what may be given
  /// An absent value leaves what the stack has.
  void (*read)(const config::Value&, Stack&);
  ModelValue (*value)(const Stack&);
};

std::span<const CompositionKey> composition_keys();

/// A whole description of family `composed`: `name`, `family` and the keys of the table. An encoder takes what it does
/// not say from the main stack. Throws config::ConfigError.
ModelDescription read_composition(const config::Value& value, std::string fallback_name);

}  // namespace ridgeline

// The `training.lora` section of a scenario.
#pragma once

#include <optional>

#include "sim/config/value.h"
#include "sim/hardware/software.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Nothing where the key is not there. Throws ConfigError, also for what does not go with the rest of `training`.
std::optional<LoraDescription> read_lora(const config::Value& section, const TrainingDescription& training,
                                         bool compile, const Software& software);

}  // namespace ridgeline

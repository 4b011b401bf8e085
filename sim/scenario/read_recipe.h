// Choices of fine-tuning that a scenario leaves unsaid, as the default recipes of PEFT, Trainer and torchtune make
// them.
#pragma once

#include "sim/config/value.h"
#include "sim/hardware/software.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Networks above this many parameters are published in 16 bits, and scripts load them as they are published.
inline constexpr double kPublishedInHalf = 1e9;

/// Torchtune's code where a scenario names what only torchtune has: adapters in pure bf16 under torch.compile take the
/// loss in chunks and compile each block, and so does a chunked loss under torch.compile.
void take_torchtune_recipe(const config::Mapping& mapping, bool compile, TrainingDescription& t);

/// Type of the frozen network and its checkpointing under autocast; `large`: the network is published in 16 bits.
void take_autocast_recipe(const config::Mapping& mapping, bool large, TrainingDescription& t);

/// Type of adapters that no key gives.
DType default_adapter_type(const TrainingDescription& t, FrozenWeights frozen, bool compile, const Software& software);

}  // namespace ridgeline

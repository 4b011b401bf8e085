// Which blocks run again in the backward pass, and what torch.compile goes with over several GPUs.
#pragma once

#include "sim/config/value.h"
#include "sim/workload/model.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// The keys activation_checkpointing and checkpointed_every of a section `training`.
void read_checkpointing(const config::Mapping& mapping, TrainingDescription& t);
/// Key `compile_unit`, once the way of using several GPUs is known.
void read_compile_unit(const config::Mapping& mapping, TrainingDescription& t, bool compile);
/// Once the way of using several GPUs is known.
void check_checkpointing(const config::Mapping& mapping, const TrainingDescription& t, bool compile);
/// Once the network is known. `section`: training.
void check_kept_operations(const ModelDescription& model, const TrainingDescription& t, bool compile,
                           const config::Value& section);
void check_compiled(const config::Mapping& mapping, const TrainingDescription& t, bool compile);

}  // namespace ridgeline

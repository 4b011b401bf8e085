// The op trace of a model in use: weights without gradients, forward passes, generation token by token.
#pragma once

#include <cstdint>

#include "sim/workload/model.h"
#include "sim/workload/op_trace.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Which tokens of a generation a trace holds.
enum class Tokens : std::uint8_t {
  looped,      ///< the first, and what all others do (OpTrace::tokens) where there are many
  written_out  ///< each, of which there may not be too many
};

/// Set-up and `steps` runs of what `training.inference` describes: one evaluation (a forward pass with its loss), or
/// one call of generate() from a prompt to its last token. A step of the trace is one such run. Throws UserError for a
/// model that generates no text or a sequence beyond its positions.
OpTrace inference_run(const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention,
                      int steps = 2, Tokens tokens = Tokens::looped);

}  // namespace ridgeline

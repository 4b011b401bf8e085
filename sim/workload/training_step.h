// From a model and the way it is trained to the operations PyTorch would run, with every allocation and free.
#pragma once

#include <span>

#include "sim/workload/model.h"
#include "sim/workload/op_trace.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Accumulated micro-batches of a step that are written one by one. Of more, the first that equals the one before it is
/// held once with how often it runs (OpTrace::repeats), and the last follows.
inline constexpr std::int64_t kWrittenOut = 8;

/// Set-up (inputs, weights in the order of `.to(device)`), then `steps` training steps; the first creates optimizer
/// states, the last is the steady state: one more is run where a wrapper rebuilds its buffers in the second. Throws
/// UserError for descriptions that cannot be trained as asked (sequence longer than the position table, fused
/// implementation of an optimizer that has none, ...).
OpTrace training_run(const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention,
                     int steps = 2, std::int64_t written_out = kWrittenOut);

}  // namespace ridgeline

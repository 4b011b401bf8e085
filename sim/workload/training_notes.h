// What a training run was approximated by, for the report.
#pragma once

#include "sim/workload/model.h"
#include "sim/workload/op_trace.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Appends to the notes of `trace`, whose step trains `trained` numbers.
void add_notes(OpTrace& trace, const ModelDescription& model, const TrainingDescription& training,
               AttentionChoice attention, std::int64_t trained);

}  // namespace ridgeline

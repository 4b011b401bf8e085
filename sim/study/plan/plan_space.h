// All ways to train that a plan looks at.
//
// Choices are made one after the other: recomputation, tensor parallel ranks, stages, context and expert parallel
// ranks, who splits layers, the pipeline's schedule, how data parallel ranks stay equal, the micro-batch. After each
// the reader of scenarios is asked; where it refuses a choice that was made, all that would follow is left out with its
// reason. Names of strategies, schedules and kinds of recomputation are those that the reader takes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/study/plan/plan_base.h"

namespace ridgeline {

/// In a fixed order; those that are refused stand among them, with the reader's reason and what was chosen until then.
std::vector<PlanCandidate> plan_space(const PlanBase& base, std::int64_t gpus, Descriptions& descriptions);

/// What the scenario of a candidate changes: descriptions and nodes of the base, then the candidate's own.
std::vector<config::Override> all_changes(const PlanBase& base, const PlanCandidate& candidate);

}  // namespace ridgeline

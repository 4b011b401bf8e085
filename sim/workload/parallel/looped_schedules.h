// Schedules of several stages a rank: interleaved 1F1B, its zero-bubble variant, ZBV (schedule.h has the others).
#pragma once

#include "sim/workload/parallel/schedule.h"

namespace ridgeline::parallel {

/// What each rank does; `round`: micro-batches that go through all stages of a rank in one round.
std::vector<RankActions> make_looped_schedule(const PipelineShape& shape, std::int32_t round);

}  // namespace ridgeline::parallel

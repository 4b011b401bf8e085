// A stack of blocks whose layers several ranks share: each has some of the heads and of the feed-forward columns, of
// every expert too. What ranks exchange, and what is whole on each: split_layers.h.
#pragma once

#include <cstdint>
#include <string>

#include "sim/workload/composition.h"
#include "sim/workload/training.h"

namespace ridgeline::families {

/// What one of `ranks` has: fewer heads of the same width, fewer columns.
Composition share_of(const Composition& whole, std::int64_t ranks);

/// Why layers of this network are not shared by the ranks that `training` has; empty where they are.
std::string why_not_split(const Composition& composition, const TrainingDescription& training);

}  // namespace ridgeline::families

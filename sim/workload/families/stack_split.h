// A stack of blocks whose layers several ranks share by hand: each has some of the heads and of the feed-forward
// columns; tables, norms and the head are whole on each. What ranks exchange: parallel/tensor_parallel.h.
#pragma once

#include <cstdint>
#include <string>

#include "sim/workload/composition.h"

namespace ridgeline::families {

/// What one of `ranks` has: fewer heads of the same width, fewer columns.
Composition share_of(const Composition& whole, std::int64_t ranks);

/// Why layers of this network are not shared by so many ranks; empty where they are.
std::string why_not_split(const Composition& composition, std::int64_t ranks);

}  // namespace ridgeline::families

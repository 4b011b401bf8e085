// When the last of a kernel's unequal thread blocks ends: each starts, in launch order, on the first slot that comes
// free.
#pragma once

#include <span>

namespace ridgeline {

/// End of a grid that runs the list `cost` of block times `repeats` times over on `slots` equal slots. Exact up to a
/// few rounds of blocks; beyond, the mean load plus the expected tail, 0.62 of the longest block (heap simulations of
/// linear lists: 0.55 to 0.68 from 4 rounds on, whatever the order of blocks).
double schedule_end(std::span<const double> cost, double repeats, int slots);

}  // namespace ridgeline

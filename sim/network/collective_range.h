// How far measured collectives lie from the law.
#pragma once

#include "sim/network/collective_time.h"

namespace ridgeline {

/// Factors on a predicted time between which nine measured ones in ten lie.
struct CollectiveRange {
  double low = 1, high = 1;
};

CollectiveRange collective_range(const Collective& collective, const Placement& placement, bool validated);

}  // namespace ridgeline

#include "sim/network/collective_range.h"

#include <algorithm>

#include "sim/network/tables/collective_range.inc"

namespace ridgeline {
namespace {

constexpr std::int64_t kLarge = 1 << 20;
constexpr double kLeast = 0.25;        // of a prediction
constexpr double kNotValidated = 3.0;  // times as wide where nothing was compared

}  // namespace

CollectiveRange collective_range(const Collective& collective, const Placement& placement, bool validated) {
  namespace table = collective_range_table;
  const CollectiveRange range = placement.nodes > 1          ? table::nodes
                                : collective.bytes >= kLarge ? table::large
                                                             : table::small;
  if (validated) return range;
  return {std::max(kLeast, 1.0 - (1.0 - range.low) * kNotValidated), 1.0 + (range.high - 1.0) * kNotValidated};
}

}  // namespace ridgeline

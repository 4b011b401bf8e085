#include "sim/network/collective_range.h"

#include <algorithm>

namespace ridgeline {
namespace {

// 4.5 % and 95.5 % quantiles of measured over predicted of rows that no fit saw (tests/network prints them); over nodes
// of all published rows.
constexpr std::int64_t kLarge = 1 << 20;
constexpr CollectiveRange kLargeRange{0.88, 1.13}, kSmallRange{0.9, 1.12}, kNetworkRange{0.7, 1.4};
constexpr double kLeast = 0.25;        // of a prediction
constexpr double kNotValidated = 3.0;  // times as wide where nothing was compared

}  // namespace

CollectiveRange collective_range(const Collective& collective, const Placement& placement, bool validated) {
  CollectiveRange range = placement.nodes > 1 ? kNetworkRange : collective.bytes >= kLarge ? kLargeRange : kSmallRange;
  if (validated) return range;
  return {std::max(kLeast, 1.0 - (1.0 - range.low) * kNotValidated), 1.0 + (range.high - 1.0) * kNotValidated};
}

}  // namespace ridgeline

// How far measured collectives lie from the law, and which were measured (data/laws/collective_range.yaml).
#pragma once

#include "sim/hardware/gpu.h"
#include "sim/network/collective_time.h"

namespace ridgeline {

/// Of the collectives of one kind of links and one class of sizes.
struct CollectiveRange {
  double low = 1, high = 1;                           ///< factors on a time between which nine in ten lie
  double pair_low = 1, pair_high = 1;                 ///< the same of all_to_all and send_recv
  double ranks_from = 0, ranks_to = 0;                ///< GPUs of a node that measured; 0: none did
  double reductions = 0, gathers = 0, exchanges = 0;  ///< 1 where all_reduce; gathers and scatters; all_to_all did
  double copies = 0;                                  ///< and broadcast, reduce and send_recv
};

/// Largest of the short, and of the middle sizes.
inline constexpr std::int64_t kShortCollective = (1 << 18) - 1, kMiddleCollective = 1 << 24;

/// What was measured inside a node over links of this kind, in the class of these bytes.
const CollectiveRange& measured_range(Architecture architecture, CollectiveLimiter links, std::int64_t bytes);

/// Empty where collectives of this kind, of as many GPUs, are among them; else what is missing.
std::string not_among(const CollectiveRange& measured, const Collective& collective, int ranks);

/// Wider where nothing of the kind was measured.
CollectiveRange collective_range(Architecture architecture, CollectiveLimiter links, const Collective& collective,
                                 const Placement& placement, bool validated);

}  // namespace ridgeline

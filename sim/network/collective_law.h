// The law of a collective's time as a function of its constants, for the program that fits them too.
#pragma once

#include "sim/network/collective_time.h"
#include "sim/network/group_links.h"
#include "sim/network/nccl_choice.h"
#include "sim/network/network_constants.h"

namespace ridgeline {

/// Bytes that one rank sends: 2 (n - 1) / n of the buffer of an all_reduce.
double wire_bytes(CollectiveKind kind, int ranks, double bytes);

struct LawTime {
  Seconds time;  ///< of the kernel
  CollectiveLimiter limiter = CollectiveLimiter::latency;
};

/// At least two ranks and one byte.
LawTime collective_law(const Collective& collective, const Placement& placement, const GroupLinks& links,
                       const NcclChoice& choice, const NetworkConstants& constants);

}  // namespace ridgeline

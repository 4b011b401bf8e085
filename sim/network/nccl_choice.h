// NCCL's choice of algorithm, protocol and thread blocks for a collective.
//
// The estimates are those of NCCL's tuner: a latency by protocol and step, and bytes over a bandwidth by protocol
// (NCCL 2.30, src/graph/tuning.cc); the least wins. They choose and are not the predicted time.
#pragma once

#include "sim/network/cluster.h"
#include "sim/network/collective_time.h"
#include "sim/network/group_links.h"
#include "sim/workload/collective.h"

namespace ridgeline {

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  int channels = 1, threads = 512;
};

NcclChoice nccl_choice(const Cluster& cluster, const Placement& placement, const GroupLinks& links,
                       const Collective& collective);

/// Channels of a pair of ranks of a group of `ranks` that exchanges `bytes`.
int pair_channels(int ranks, std::int64_t bytes);

/// From one rank to the next, one after the other: 2 (n - 1) of an all_reduce.
int ring_steps(CollectiveKind kind, int ranks);

}  // namespace ridgeline

// What a group of ranks sends over: which links, how fast, through how many channels.
#pragma once

#include "sim/network/cluster.h"
#include "sim/network/collective_time.h"

namespace ridgeline {

struct GroupLinks {
  CollectiveLimiter kind = CollectiveLimiter::links;  ///< links, pcie or host, inside a node
  BytesPerSecond bus;         ///< payload that one rank sends a second while all do, inside its node
  BytesPerSecond exchange{};  ///< the same of an all_to_all; 0: as `bus`
  int channels = 1;           ///< thread blocks that NCCL gives a collective at most
  bool ring = true;           ///< false: the GPUs form no ring, a chain carries everything up and down
  BytesPerSecond node;        ///< payload that the group sends out of one node a second; 0 in one node
  Seconds hop;                ///< one message to another node
};

/// Of collectives of all ranks.
GroupLinks group_links(const Cluster& cluster, const Placement& placement);

/// Of one sender and its receiver, a neighbour of the group.
GroupLinks pair_links(const Cluster& cluster, const Placement& placement);

}  // namespace ridgeline

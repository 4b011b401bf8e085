// Device memory that NCCL's communicators hold, outside the caching allocator.
#pragma once

#include "sim/network/cluster.h"
#include "sim/units/quantity.h"

namespace ridgeline {

/// What was done with a communicator so far: NCCL connects ranks at the first use.
struct CommunicatorUse {
  int ranks = 1;
  bool collectives = true;  ///< all_reduce, all_gather, reduce_scatter, broadcast: rings of all ranks
  int peers = 0;            ///< ranks that this one sends to and receives from (ranks - 1 after an all_to_all)
  int sends_to = 0;         ///< ranks that this one sends to alone (the one that scatters)
  int receives_from = 0;    ///< ranks that this one receives from alone
};

/// Of NCCL itself: once a process, when the first communicator is made.
Bytes nccl_base_memory(const Cluster& cluster);

/// Of one communicator, on top of that.
Bytes communicator_memory(const Cluster& cluster, const CommunicatorUse& use);

}  // namespace ridgeline

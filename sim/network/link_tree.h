// Where the GPUs of a node sit between its sockets, and what a ring of them can carry through it.
//
// A GPU hangs from a PCIe switch or a root port, that from a root complex (host bridge) of a socket. Whatever several
// edges of a ring, or several groups, cross at once is shared between them.
#pragma once

#include "sim/network/cluster.h"
#include "sim/network/collective_time.h"

namespace ridgeline {

/// Shares of a slot's rate that collectives reached: 20 of 24 GB/s from an A100 to a third one without a bridge, 35 of
/// 54 GB/s between four RTX 5090 through the host.
inline constexpr double kPcieDirect = 0.83, kThroughHost = 0.65;

/// The farthest part that the way between two GPUs crosses; GPUs of a node whose tree is not described are at `phb`.
PcieLevel level_between(const Cluster& cluster, int one, int other);

/// NCCL lets the two write into each other's memory, rather than through the host's.
bool reach_each_other(const Cluster& cluster, int one, int other);

struct TreeRate {
  BytesPerSecond ring;                               ///< payload that each rank of a ring passes on a second
  BytesPerSecond exchange;                           ///< payload that each rank sends a second in an all_to_all
  CollectiveLimiter kind = CollectiveLimiter::pcie;  ///< links where NVLinks join all of the ring, host, or pcie
};

/// Of the ring whose narrowest edge is widest, over NVLinks where they join neighbours; all groups of the node that
/// `placement` says run at once. The node's tree is described.
TreeRate tree_rate(const Cluster& cluster, const Placement& placement);

/// Of a copy from one GPU to another while nothing else runs.
BytesPerSecond tree_copy_rate(const Cluster& cluster, int from, int to);

/// What one GPU of `at_once`, the first of the node, copies from or to the host's memory a second while all do.
BytesPerSecond host_copy_rate(const Cluster& cluster, BytesPerSecond alone, int at_once);

}  // namespace ridgeline

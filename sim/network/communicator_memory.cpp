#include "sim/network/communicator_memory.h"

#include <algorithm>

#include "sim/network/group_links.h"

namespace ridgeline {
namespace {

// Of a connection and channel: the receiver's buffers (LL 512 KiB, LL128 4.7 MiB, Simple 4 MiB) are given in whole 2
// MiB, as are the sender's.
constexpr double kReceiver = 10.0 * kMiB, kSender = 2.0 * kMiB;
// Of a communicator besides: what is left of 474 and 486 MiB with 24 channels on an H200, at 2 and at 4 ranks alike.
// One that was made and never used takes this alone: where fully_shard makes two for each module and gathers from one
// (reshard_after_forward: 2 of four ranks), 682 MiB a module, 485 of them the used one's.
constexpr double kBesides = 192.0 * kMiB;
// Of the connections of pairs besides: what is left of 446 MiB with one peer, 1214 MiB with three.
constexpr double kPairsBesides = 62.0 * kMiB;
constexpr int kChannelsOfAPair = 32;
// Once a process: init_process_group on an H200, PyTorch 2.11, NCCL 2.28.9.
constexpr double kBase = 364.0 * kMiB;

}  // namespace

Bytes nccl_base_memory(const Cluster&) { return Bytes{kBase}; }

Bytes communicator_memory(const Cluster& cluster, const CommunicatorUse& use) {
  if (use.ranks < 2) return Bytes{0.0};
  const int senders = use.peers + use.receives_from, receivers = use.peers + use.sends_to;
  const bool pairs = senders + receivers > 0;
  double bytes = 0;
  if (use.collectives || !pairs) bytes += kBesides;
  if (use.collectives) {
    const Placement placement = place(cluster, std::min(use.ranks, cluster.all_gpus()));
    bytes += group_links(cluster, placement).channels * (kReceiver + kSender);
  }
  if (pairs) bytes += kPairsBesides + kChannelsOfAPair * (senders * kReceiver + receivers * kSender);
  return Bytes{bytes};
}

}  // namespace ridgeline

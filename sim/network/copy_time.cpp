#include "sim/network/copy_time.h"

#include <algorithm>
#include <cstdlib>

#include "sim/network/link_tree.h"

namespace ridgeline {
namespace {

// Measured on two NVIDIA H200 (measurements/h200/parallel/copies.jsonl).
constexpr double kPeerStart = 14.5e-6, kPinnedStart = 2.7e-6, kPageableStart = 10.0e-6, kStagedStart = 16.0e-6;
constexpr double kCopyOfLinks = 1.07;  // of the links' payload as NCCL counts it: 396 of 371 GB/s
constexpr double kPageableShare =
    0.345;                            // of the pinned rate: 19.1 of 55.4 GB/s; a copy into the driver's buffers first
constexpr double kSmallShare = 0.07;  // of the pinned rate: what the host itself writes to the device
constexpr double kBlock = 64.0 * 1024.0;  // up to here the host writes pageable memory itself

double peer_rate(const Cluster& cluster, int from, int to) {
  const double link = cluster.links.rate.value() * cluster.links.efficiency * kCopyOfLinks;
  const auto at = [](int gpu) { return static_cast<std::size_t>(gpu); };
  switch (cluster.interconnect) {
    case Interconnect::nvswitch: return link * cluster.links.count;
    case Interconnect::mesh:
      if (std::max(from, to) < static_cast<int>(cluster.links.matrix.size()))
        if (const int links = cluster.links.matrix[at(from)][at(to)]; links > 0) return link * links;
      break;
    case Interconnect::bridge:
      if (from / 2 == to / 2) return link * cluster.links.count;
      break;
    case Interconnect::pcie:
    case Interconnect::none: break;
  }
  if (std::max(from, to) < static_cast<int>(cluster.links.tree.size()))
    return tree_copy_rate(cluster, from, to).value();
  const bool direct = cluster.pcie.peer_to_peer && cluster.interconnect != Interconnect::none;
  // Through the host's memory in pieces, of which one comes while another goes.
  return direct ? cluster.pcie.rate.value() : std::min(cluster.pcie.rate.value(), 0.5 * cluster.pcie.host.value());
}

}  // namespace

Seconds copy_time(const Cluster& cluster, const Gpu& gpu, CopyRoute route, Bytes bytes, int from, int to) {
  const double size = bytes.value(), host = gpu.host_link.bandwidth.value();
  switch (route) {
    case CopyRoute::peer: {
      if (from == to) return gpu.launch.kernel_fixed + 2.0 * bytes / gpu.dram.bandwidth;
      return Seconds{kPeerStart + size / peer_rate(cluster, from, to)};
    }
    case CopyRoute::pinned: return Seconds{kPinnedStart + size / host};
    case CopyRoute::pageable: break;
  }
  if (size <= kBlock) return Seconds{kPageableStart + size / (kSmallShare * host)};
  return Seconds{kStagedStart + size / (kPageableShare * host)};
}

}  // namespace ridgeline

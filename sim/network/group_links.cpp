#include "sim/network/group_links.h"

#include <algorithm>
#include <cmath>

#include "sim/network/mesh_rings.h"

namespace ridgeline {
namespace {

/// NCCL doubles the rings that it finds; with switches it finds rings of so many bytes a second.
constexpr int kSwitchChannels = 24, kPcieChannels = 4;
// Shares of a slot's rate that collectives reached: 20 of 24 GB/s from an A100 to a third one without a bridge, 35 of
// 54 GB/s between four RTX 5090 through the host.
constexpr double kPcieDirect = 0.83, kThroughHost = 0.65;

BytesPerSecond link_payload(const Cluster& cluster) { return cluster.links.rate * cluster.links.efficiency; }

/// Over PCIe or the host's memory, `ranks` at once.
void use_pcie(GroupLinks& links, const Cluster& cluster, int ranks) {
  links.channels = kPcieChannels;
  if (cluster.pcie.peer_to_peer && cluster.interconnect != Interconnect::none) {
    links.kind = CollectiveLimiter::pcie;
    links.bus = cluster.pcie.rate * kPcieDirect;
    return;
  }
  links.kind = CollectiveLimiter::host;
  const double share_of_host = cluster.pcie.host.value() / (2.0 * std::max(1, ranks));  // each byte is written and read
  links.bus = BytesPerSecond{std::min(cluster.pcie.rate.value() * kThroughHost, share_of_host)};
}

void use_node(GroupLinks& links, const Cluster& cluster, int ranks, int stride) {
  switch (cluster.interconnect) {
    case Interconnect::nvswitch:
      links.bus = link_payload(cluster) * cluster.links.count;
      links.channels = kSwitchChannels;
      return;
    case Interconnect::mesh: {
      if (static_cast<int>(cluster.links.matrix.size()) <= (ranks - 1) * stride) break;
      const LinkCounts part = links_between(cluster.links.matrix, ranks, stride);
      const int rings = disjoint_rings(part);
      links.ring = rings > 0;
      links.bus = link_payload(cluster) * std::max(1, rings);
      links.channels = 2 * std::max(1, rings);
      return;
    }
    case Interconnect::bridge:
      if (ranks != 2 || stride != 1) break;
      links.bus = link_payload(cluster) * cluster.links.count;
      links.channels = std::min(kSwitchChannels, 2 * cluster.links.count);
      return;
    case Interconnect::pcie:
    case Interconnect::none: break;
  }
  use_pcie(links, cluster, ranks);
}

void use_network(GroupLinks& links, const Cluster& cluster, int groups) {
  const BytesPerSecond all = cluster.nics.rate * (cluster.nics.efficiency * cluster.nics.count);
  links.node = all / (cluster.oversubscription * std::max(1, groups));
  links.hop = cluster.nics.latency;
}

}  // namespace

GroupLinks group_links(const Cluster& cluster, const Placement& placement) {
  GroupLinks links;
  use_node(links, cluster, std::max(2, placement.ranks_a_node), placement.stride);
  if (placement.nodes > 1) use_network(links, cluster, placement.groups_a_nic);
  return links;
}

GroupLinks pair_links(const Cluster& cluster, const Placement& placement) {
  GroupLinks links;
  if (placement.ranks_a_node > 1) use_node(links, cluster, 2, placement.stride);
  if (placement.nodes > 1) {
    use_network(links, cluster, placement.groups_a_nic);
    links.node = std::min(links.node, cluster.nics.rate * cluster.nics.efficiency);
  }
  return links;
}

}  // namespace ridgeline

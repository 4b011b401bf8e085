#include "sim/network/group_links.h"

#include <algorithm>
#include <cmath>

#include "sim/network/link_tree.h"
#include "sim/network/mesh_rings.h"

namespace ridgeline {
namespace {

/// NCCL doubles the rings that it finds; with switches it finds rings of so many bytes a second.
constexpr int kSwitchChannels = 24, kPcieChannels = 4;

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

/// Over a tree that the cluster describes; false where NVLinks join all ranks or the tree does not reach them.
bool use_tree(GroupLinks& links, const Cluster& cluster, const Placement& at) {
  const std::size_t last = static_cast<std::size_t>(at.ranks_a_node - 1) * static_cast<std::size_t>(at.stride);
  if (last >= cluster.links.tree.size()) return false;
  const TreeRate rate = tree_rate(cluster, at);
  if (rate.kind == CollectiveLimiter::links) return false;
  links.channels = kPcieChannels;
  links.kind = rate.kind;
  links.bus = rate.ring;
  links.exchange = rate.exchange;
  return true;
}

void use_node(GroupLinks& links, const Cluster& cluster, Placement at, int ranks) {
  const int stride = at.stride;
  at.ranks_a_node = ranks;
  switch (cluster.interconnect) {
    case Interconnect::nvswitch:
      links.bus = link_payload(cluster) * cluster.links.count;
      links.channels = kSwitchChannels;
      return;
    case Interconnect::mesh: {
      if (static_cast<int>(cluster.links.matrix.size()) <= (ranks - 1) * stride) break;
      const LinkCounts part = links_between(cluster.links.matrix, ranks, stride);
      if (!are_joined(part) && use_tree(links, cluster, at)) return;
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
  if (!use_tree(links, cluster, at)) use_pcie(links, cluster, ranks);
}

void use_network(GroupLinks& links, const Cluster& cluster, int groups) {
  const BytesPerSecond all = cluster.nics.rate * (cluster.nics.efficiency * cluster.nics.count);
  links.node = all / (cluster.oversubscription * std::max(1, groups));
  links.hop = cluster.nics.latency;
}

}  // namespace

GroupLinks group_links(const Cluster& cluster, const Placement& placement) {
  GroupLinks links;
  use_node(links, cluster, placement, std::max(2, placement.ranks_a_node));
  if (placement.nodes > 1) use_network(links, cluster, placement.groups_a_nic);
  return links;
}

GroupLinks pair_links(const Cluster& cluster, const Placement& placement) {
  GroupLinks links;
  if (placement.ranks_a_node > 1) use_node(links, cluster, placement, 2);
  if (placement.nodes > 1) {
    use_network(links, cluster, placement.groups_a_nic);
    links.node = std::min(links.node, cluster.nics.rate * cluster.nics.efficiency);
  }
  return links;
}

}  // namespace ridgeline

#include "sim/network/link_tree.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <span>

namespace ridgeline {
namespace {

/// Orders of up to as many ranks are all tried; more ranks follow the tree.
constexpr std::size_t kMostTried = 8;

using Order = std::vector<int>;

/// Everything that flows share, by what it is and which one, and how many of them cross it.
class Loads {
  enum class Part : std::uint8_t {
    nvlink,
    slot_out,
    slot_in,
    slot_out_host,
    slot_in_host,
    port_out,
    port_in,
    bridge_out,
    bridge_in,
    socket,
    memory
  };

 public:
  explicit Loads(const Cluster& cluster) : cluster_(cluster) {
    for (const GpuSeat& one : cluster.links.tree)
      ++behind_[{Part::port_out, one.port}], ++behind_[{Part::bridge_out, one.bridge}];
  }

  void add(int from, int to) {
    if (nvlinks(from, to) > 0) {
      ++load_[{Part::nvlink, from * kMany + to}];
      return;
    }
    const bool direct = reach_each_other(cluster_, from, to);
    const PcieLevel level = level_between(cluster_, from, to);
    ++load_[{direct ? Part::slot_out : Part::slot_out_host, from}];
    ++load_[{direct ? Part::slot_in : Part::slot_in_host, to}];
    const GpuSeat &out = seat(from), &in = seat(to);
    if (!direct || level > PcieLevel::pix) add_uplinks(Part::port_out, out.port, Part::port_in, in.port);
    if (!direct || level > PcieLevel::pxb) add_uplinks(Part::bridge_out, out.bridge, Part::bridge_in, in.bridge);
    if (level == PcieLevel::sys) ++load_[{Part::socket, out.socket * kMany + in.socket}];
    if (!direct) load_[{Part::memory, 0}] += 2;  // written and read
  }

  struct Narrowest {
    double rate = std::numeric_limits<double>::infinity();
    CollectiveLimiter kind = CollectiveLimiter::links;
  };
  /// Of one flow, while all have the same.
  [[nodiscard]] Narrowest narrowest() const {
    Narrowest result;
    bool through_host = false, pcie = false;
    for (const auto& [part, load] : load_) {
      result.rate = std::min(result.rate, capacity(part.first, part.second) / load);
      through_host = through_host || part.first == Part::memory;
      pcie = pcie || part.first != Part::nvlink;
    }
    if (pcie) result.kind = through_host ? CollectiveLimiter::host : CollectiveLimiter::pcie;
    return result;
  }

 private:
  static constexpr int kMany = 1 << 12;

  /// A switch with one GPU behind it is no narrower than the GPU's slot.
  void add_uplinks(Part up, int from, Part down, int to) {
    if (behind_[{up, from}] > 1) ++load_[{up, from}];
    if (behind_[{up, to}] > 1) ++load_[{down, to}];
  }
  [[nodiscard]] const GpuSeat& seat(int gpu) const { return cluster_.links.tree[static_cast<std::size_t>(gpu)]; }
  [[nodiscard]] int nvlinks(int from, int to) const {
    const auto& matrix = cluster_.links.matrix;
    const auto a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(to);
    if (std::max(a, b) < matrix.size()) return matrix[a][b];
    return cluster_.interconnect == Interconnect::bridge && from / 2 == to / 2 ? cluster_.links.count : 0;
  }
  [[nodiscard]] double capacity(Part part, int which) const {
    const PciePath& pcie = cluster_.pcie;
    switch (part) {
      case Part::nvlink:
        return nvlinks(which / kMany, which % kMany) * cluster_.links.rate.value() * cluster_.links.efficiency;
      case Part::slot_out:
      case Part::slot_in: return kPcieDirect * pcie.rate.value();
      case Part::slot_out_host:
      case Part::slot_in_host: return kThroughHost * pcie.rate.value();
      case Part::port_out:
      case Part::port_in:
      case Part::bridge_out:
      case Part::bridge_in: return kPcieDirect * (pcie.uplink.value() > 0 ? pcie.uplink : pcie.rate).value();
      case Part::socket: return pcie.socket.value();
      case Part::memory: break;
    }
    return pcie.host.value();
  }

  const Cluster& cluster_;
  std::map<std::pair<Part, int>, double> load_;
  std::map<std::pair<Part, int>, int> behind_;  ///< GPUs of a switch
};

/// The first GPU of each group that runs at once.
Order group_starts(const Cluster& cluster, const Placement& at) {
  Order starts{0};
  const int span = at.ranks_a_node * at.stride;
  if (at.groups_at_once <= 1 || span > cluster.gpus) return starts;
  starts.clear();
  for (int block = 0; block + span <= cluster.gpus; block += span)
    for (int first = 0; first < at.stride; ++first) starts.push_back(block + first);
  return starts;
}

Loads::Narrowest ring_of(const Cluster& cluster, std::span<const int> starts, const Order& order, int stride) {
  Loads loads(cluster);
  for (const int start : starts)
    for (std::size_t i = 0; i < order.size(); ++i)
      loads.add(start + order[i] * stride, start + order[(i + 1) % order.size()] * stride);
  return loads.narrowest();
}

/// Neighbours in the tree, and of them those that NVLinks join, beside each other.
Order along_the_tree(const Cluster& cluster, int ranks, int stride) {
  Order order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int rank) {
    const GpuSeat& seat = cluster.links.tree[static_cast<std::size_t>(rank * stride)];
    return std::array{seat.socket, seat.root, seat.bridge, seat.port};
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  return order;
}

TreeRate search(const Cluster& cluster, const Placement& at) {
  const int ranks = std::max(2, at.ranks_a_node);
  const Order starts = group_starts(cluster, at);
  Order order = along_the_tree(cluster, ranks, at.stride);
  Loads::Narrowest best = ring_of(cluster, starts, order, at.stride);
  if (order.size() <= kMostTried && ranks > 2) {
    std::sort(order.begin(), order.end());
    while (std::next_permutation(order.begin() + 1, order.end())) {  // a ring has no first rank
      if (order[1] > order.back()) continue;                         // and the same edges the other way around
      const Loads::Narrowest other = ring_of(cluster, starts, order, at.stride);
      if (other.rate > best.rate) best = other;
    }
  }
  Loads pairs(cluster);
  for (const int start : starts)
    for (int from = 0; from < ranks; ++from)
      for (int to = 0; to < ranks; ++to)
        if (from != to) pairs.add(start + from * at.stride, start + to * at.stride);
  return {BytesPerSecond{best.rate}, BytesPerSecond{(ranks - 1) * pairs.narrowest().rate}, best.kind};
}

}  // namespace

PcieLevel level_between(const Cluster& cluster, int one, int other) {
  const std::vector<GpuSeat>& tree = cluster.links.tree;
  const auto a = static_cast<std::size_t>(one), b = static_cast<std::size_t>(other);
  if (std::max(a, b) >= tree.size()) return PcieLevel::phb;
  if (tree[a].port == tree[b].port) return PcieLevel::pix;
  if (tree[a].bridge == tree[b].bridge) return PcieLevel::pxb;
  if (tree[a].root == tree[b].root) return PcieLevel::phb;
  return tree[a].socket == tree[b].socket ? PcieLevel::node : PcieLevel::sys;
}

bool reach_each_other(const Cluster& cluster, int one, int other) {
  return cluster.pcie.peer_to_peer && cluster.interconnect != Interconnect::none &&
         level_between(cluster, one, other) <= cluster.pcie.p2p_level;
}

TreeRate tree_rate(const Cluster& cluster, const Placement& placement) {
  using Key = std::tuple<Cluster, Placement>;
  static std::mutex mutex;
  static std::vector<std::pair<Key, TreeRate>> known;
  const std::lock_guard lock(mutex);
  const Key key{cluster, placement};
  for (const auto& [one, rate] : known)
    if (one == key) return rate;
  constexpr std::size_t kMostKept = 64;
  if (known.size() >= kMostKept) known.erase(known.begin());
  return known.emplace_back(key, search(cluster, placement)).second;
}

BytesPerSecond tree_copy_rate(const Cluster& cluster, int from, int to) {
  Loads loads(cluster);
  loads.add(from, to);
  return BytesPerSecond{loads.narrowest().rate};
}

BytesPerSecond host_copy_rate(const Cluster& cluster, BytesPerSecond alone, int at_once) {
  const int gpus = std::max(1, std::min(at_once, cluster.gpus));
  double rate = alone.value();
  const double uplink = (cluster.pcie.uplink.value() > 0 ? cluster.pcie.uplink : cluster.pcie.rate).value();
  std::map<int, int> behind_port, behind_bridge;
  for (int gpu = 0; gpu < gpus && gpu < static_cast<int>(cluster.links.tree.size()); ++gpu) {
    const GpuSeat& seat = cluster.links.tree[static_cast<std::size_t>(gpu)];
    for (const int sharing : {++behind_port[seat.port], ++behind_bridge[seat.bridge]})
      if (sharing > 1) rate = std::min(rate, uplink / sharing);
  }
  return BytesPerSecond{rate};
}

}  // namespace ridgeline

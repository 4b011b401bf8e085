#include "sim/network/collective_law.h"

#include <algorithm>
#include <cmath>

namespace ridgeline {
namespace {

constexpr std::int64_t kAlignment = 16;    // bytes that a thread loads at once
constexpr double kLongExchange = 1 << 20;  // shorter ones wait for latency, not for loads
constexpr double kPairOfLl = 1 << 14;      // NCCL_P2P_LL_THRESHOLD: longer ones go with Simple
constexpr int kNarrowBlock = 128, kWideBlock = 512;

/// Payload that a rank works on: sent or not. A ring's first and last ranks of a chunk do not pass it on.
double worked_bytes(CollectiveKind kind, int ranks, double bytes) {
  if (kind == CollectiveKind::all_reduce) return (2.0 * ranks - 1.0) / ranks * bytes;
  return bytes;
}

bool is_pair(CollectiveKind kind) { return kind == CollectiveKind::send_recv || kind == CollectiveKind::all_to_all; }

/// Microseconds that pass before data flow, and those that data take, inside a node.
struct Parts {
  double latency = 0, flow = 0;
};

class NodeLaw {
 public:
  NodeLaw(CollectiveKind kind, int ranks, double bytes, const GroupLinks& links, const NcclChoice& choice,
          const NetworkConstants& c)
      : kind_(kind), ranks_(ranks), bytes_(bytes), links_(links), choice_(choice), c_(c) {}

  [[nodiscard]] Parts parts() const {
    if (is_pair(kind_)) return pairs();
    if (choice_.algorithm == NcclAlgorithm::nvls || choice_.algorithm == NcclAlgorithm::nvls_tree) return nvls();
    switch (choice_.protocol) {
      case NcclProtocol::ll: return ll();
      case NcclProtocol::ll128: return ll128();
      case NcclProtocol::simple: break;
    }
    return simple();
  }

 private:
  [[nodiscard]] double bus_gb_s() const { return links_.bus.value() * 1e-9; }
  [[nodiscard]] static double us(double bytes, double gb_s) { return bytes / gb_s * 1e-3; }
  /// Shares that begin between the addresses of whole loads.
  [[nodiscard]] bool is_unaligned() const { return std::fmod(bytes_, 1.0 * kAlignment * ranks_) != 0.0; }
  /// From 0 of the smallest blocks to 1 of the widest, whose barriers take longer.
  [[nodiscard]] double wide() const {
    return std::clamp((choice_.threads - kNarrowBlock) / double{kWideBlock - kNarrowBlock}, 0.0, 1.0);
  }
  /// A chain passes the whole buffer over its slowest link, once up and once down at the same time.
  [[nodiscard]] double wire() const { return links_.ring ? wire_bytes(kind_, ranks_, bytes_) : bytes_; }
  [[nodiscard]] double worked() const { return std::max(wire(), worked_bytes(kind_, ranks_, bytes_)); }
  /// A broadcast flows past its first rank at once.
  [[nodiscard]] int steps() const {
    return kind_ == CollectiveKind::broadcast || kind_ == CollectiveKind::reduce ? 1 : ring_steps(kind_, ranks_);
  }

  [[nodiscard]] Parts ll() const {
    const double on_wire = us(worked(), bus_gb_s());
    const double on_channels = us(worked() / choice_.channels, c_.ll_channel_gb_s);
    const double latency = c_.start_us + wide() * c_.wide_us + steps() * c_.ll_step_us;
    return {latency, std::max(2.0 * on_wire, on_channels)};  // half of a line is a flag
  }
  [[nodiscard]] Parts ll128() const {
    return {c_.bulk_start_us + steps() * c_.ll128_step_us, us(worked(), c_.ll128_share * bus_gb_s())};
  }
  [[nodiscard]] Parts simple() const {
    const double sent = us(wire(), c_.simple_share * bus_gb_s());
    const double share = kind_ == CollectiveKind::all_reduce ? c_.reduce_share : c_.gather_share;
    const double kept = us(worked() - wire(), share * bus_gb_s());
    double flow = sent + kept + c_.ramp_us * std::sqrt(sent);
    if (kind_ == CollectiveKind::all_gather && is_unaligned()) flow *= c_.unaligned;
    return {c_.bulk_start_us + steps() * c_.simple_step_us, flow};
  }
  [[nodiscard]] Parts nvls() const {
    const double sent = us(bytes_, c_.nvls_share * bus_gb_s());  // once to the switch and once back
    return {c_.nvls_start_us, sent + c_.nvls_ramp_us * std::sqrt(sent)};
  }
  [[nodiscard]] Parts pairs() const {
    const bool exchange = kind_ == CollectiveKind::all_to_all;
    const bool tree = exchange && links_.exchange.value() > 0;  // which counts what the pairs share
    const double bus = tree ? links_.exchange.value() * 1e-9 : bus_gb_s();
    const double links = bus * c_.pair_share * (exchange && !tree ? c_.exchange_share : 1.0);
    const double share = exchange ? bytes_ / std::max(1, ranks_) : bytes_;
    int channels = choice_.channels;
    if (exchange)  // the others copy the rank's own share
      channels = std::min(channels, (ranks_ - 1) * pair_channels(ranks_, static_cast<std::int64_t>(share)));
    const double by_channels = channels * c_.pair_channel_gb_s * (exchange ? c_.exchange_share : 1.0);
    double sent = us(wire(), std::min(links, by_channels));
    if (exchange && is_unaligned() && bytes_ >= kLongExchange) sent *= c_.unaligned;
    const double peers = exchange ? c_.peer_us * (ranks_ - 2) : 0.0;
    const double start = c_.pair_start_us + (share > kPairOfLl ? c_.pair_bulk_us : 0.0);
    return {start + peers, sent + c_.pair_fill_us * std::sqrt(sent)};
  }

  CollectiveKind kind_;
  int ranks_;
  double bytes_;
  const GroupLinks& links_;
  const NcclChoice& choice_;
  const NetworkConstants& c_;
};

/// Bytes that leave a node, for each rank in it, times these: all of them share the node's NICs.
double sent_between_nodes(const Collective& collective, const Placement& at) {
  const double bytes = static_cast<double>(collective.bytes), nodes = at.nodes, local = at.ranks_a_node;
  switch (collective.kind) {
    case CollectiveKind::all_reduce: return 2.0 * (nodes - 1.0) / nodes * bytes;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter: return (nodes - 1.0) / nodes * bytes;
    case CollectiveKind::all_to_all: return (at.ranks - local) / at.ranks * bytes * local;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_recv:
    case CollectiveKind::peer_copy:
    case CollectiveKind::barrier: break;
  }
  return bytes;
}

/// Messages between nodes, one after the other: a tree of nodes, up and down.
double hops(const Collective& collective, int nodes) {
  if (is_pair(collective.kind)) return 1.0;
  const double levels = std::ceil(std::log2(1.0 * nodes));
  return collective.kind == CollectiveKind::all_reduce || collective.kind == CollectiveKind::barrier ? 2.0 * levels
                                                                                                     : levels;
}

}  // namespace

double wire_bytes(CollectiveKind kind, int ranks, double bytes) {
  switch (kind) {
    case CollectiveKind::all_reduce: return 2.0 * (ranks - 1.0) / ranks * bytes;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all: return (ranks - 1.0) / ranks * bytes;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_recv:
    case CollectiveKind::peer_copy:
    case CollectiveKind::barrier: break;
  }
  return bytes;
}

LawTime collective_law(const Collective& collective, const Placement& placement, const GroupLinks& links,
                       const NcclChoice& choice, const NetworkConstants& constants) {
  const double bytes = static_cast<double>(collective.bytes);
  Parts inside;
  if (placement.ranks_a_node > 1 || placement.nodes == 1)
    inside = NodeLaw(collective.kind, placement.nodes == 1 ? placement.ranks : placement.ranks_a_node, bytes, links,
                     choice, constants)
                 .parts();
  else inside.latency = constants.start_us;
  LawTime result;
  if (placement.nodes == 1) {
    result.time = microseconds(inside.latency + inside.flow);
    result.limiter = inside.latency > inside.flow ? CollectiveLimiter::latency : links.kind;
    return result;
  }
  const bool pair = collective.kind == CollectiveKind::send_recv;
  if (pair) inside.flow = 0;  // the neighbour is in another node
  const double between = sent_between_nodes(collective, placement) / links.node.value() * 1e6;
  const double latency = in_microseconds(links.hop) * hops(collective, placement.nodes);
  const double flow = std::max(inside.flow, between);
  // Chunks on their way while others wait: as many as make latency and flow least, which is the square of the sum.
  const double pipelined = std::pow(std::sqrt(latency) + std::sqrt(flow), 2.0);
  result.time = microseconds(inside.latency + pipelined);
  result.limiter = inside.latency + latency > flow ? CollectiveLimiter::latency
                   : between >= inside.flow        ? CollectiveLimiter::network
                                                   : links.kind;
  return result;
}

}  // namespace ridgeline

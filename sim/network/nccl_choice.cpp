#include "sim/network/nccl_choice.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ridgeline {
namespace {

// Microseconds and GB/s of NCCL's tuner, in the order LL, LL128, Simple.
constexpr std::array<double, 3> kRingBase{6.6, 14.0, 8.4}, kTreeBase{6.8, 14.0, 8.4};
constexpr std::array<double, 3> kRingNvlink{0.6, 1.9, 3.4}, kTreeNvlink{0.6, 1.25, 4.0};
constexpr std::array<double, 3> kRingPcie{1.0, 2.5, 5.7}, kTreePcie{1.0, 1.9, 4.0};
constexpr std::array<double, 3> kRingNetwork{2.7, 4.0, 14.0}, kTreeNetwork{5.0, 8.5, 14.0};
constexpr double kNvlsBase = 25.0, kNvlsNetwork = 18.0;
constexpr double kLlShare = 0.5, kLl128Share = 0.92, kTreeShare = 0.92, kTreeLlShare = 1.0 / 3.8;
constexpr double kNvlsOfLinks = 0.73;  // of the buffer, over the links' rate: measured on Hopper
constexpr int kThreads = 512, kLl128Threads = 640, kSimpleWarps = 32, kLeastThreads = 128;
constexpr std::int64_t kLlBytesAThread = 8, kSimpleBytesAThread = 64, kCell = 4096;
constexpr int kPairChannels = 32, kNvlsChannels = 16;
constexpr std::int64_t kPairBytesAChannel = 8192, kLongPair = std::int64_t{1} << 25;

struct Speeds {
  double ll_most, ll128_channel, tree_channel;  ///< GB/s of the bus, and of one channel
};
Speeds speeds_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::volta:
    case Architecture::turing: return {39.0, 20.0, 26.5};
    case Architecture::ampere:
    case Architecture::ada: return {87.7, 20.0, 24.0};
    case Architecture::hopper:
    case Architecture::blackwell: break;
  }
  return {141.0, 36.7, 38.7};
}

/// How many times the buffer one rank's bus bandwidth counts: bytes / time = bus x this.
double ratio_of(CollectiveKind kind, int ranks) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce
             ? 1.0
             : static_cast<double>(ranks) / ring_steps(kind, ranks);
}

class Tuner {
 public:
  Tuner(const Cluster& cluster, const Placement& placement, const GroupLinks& links, const Collective& collective)
      : cluster_(cluster),
        placement_(placement),
        links_(links),
        collective_(collective),
        nvlink_(links.kind == CollectiveLimiter::links) {}

  NcclChoice best() {
    for (const NcclProtocol protocol : {NcclProtocol::ll, NcclProtocol::ll128, NcclProtocol::simple}) {
      if (protocol == NcclProtocol::ll128 && !nvlink_) continue;
      if (links_.ring) offer(NcclAlgorithm::ring, protocol, ring_us(protocol));
      if (collective_.kind == CollectiveKind::all_reduce) offer(NcclAlgorithm::tree, protocol, tree_us(protocol));
    }
    if (has_nvls()) {
      const bool one = placement_.nodes == 1;
      offer(one ? NcclAlgorithm::nvls : NcclAlgorithm::nvls_tree, NcclProtocol::simple, nvls_us());
    }
    if (!links_.ring && collective_.kind != CollectiveKind::all_reduce)
      offer(NcclAlgorithm::ring, NcclProtocol::simple, 0.0);
    return choice_;
  }

 private:
  void offer(NcclAlgorithm algorithm, NcclProtocol protocol, double us) {
    if (us >= best_us_) return;
    best_us_ = us;
    choice_.algorithm = algorithm;
    choice_.protocol = protocol;
  }

  /// GB/s of the slowest part of a ring.
  [[nodiscard]] double bus() const {
    const double inside = links_.bus.value() * 1e-9;
    if (placement_.nodes == 1) return inside;
    return std::min(inside, links_.node.value() * 1e-9);
  }

  [[nodiscard]] double bandwidth(NcclProtocol protocol) const {
    const Speeds speeds = speeds_of(cluster_.architecture);
    switch (protocol) {
      case NcclProtocol::ll: return std::min(speeds.ll_most, kLlShare * bus());
      case NcclProtocol::ll128: return std::min(kLl128Share * bus(), links_.channels * speeds.ll128_channel);
      case NcclProtocol::simple: break;
    }
    return bus();
  }

  [[nodiscard]] double ring_us(NcclProtocol protocol) const {
    const auto p = static_cast<std::size_t>(protocol);
    const CollectiveKind kind = collective_.kind;
    const int steps = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce
                          ? placement_.ranks
                          : ring_steps(kind, placement_.ranks);
    const int between = placement_.nodes == 1 ? 0 : std::min(steps, ring_steps(kind, placement_.nodes) + 1);
    const double inside = nvlink_ ? kRingNvlink[p] : kRingPcie[p];
    const double latency = kRingBase[p] + (steps - between) * inside + between * kRingNetwork[p];
    return latency + bytes() * 1e-3 / (bandwidth(protocol) * ratio_of(kind, placement_.ranks));
  }

  [[nodiscard]] double tree_us(NcclProtocol protocol) const {
    const auto p = static_cast<std::size_t>(protocol);
    const Speeds speeds = speeds_of(cluster_.architecture);
    double rate = std::min(kTreeShare * bus(), links_.channels * speeds.tree_channel);
    if (protocol == NcclProtocol::ll) rate = std::min(rate * kTreeLlShare, speeds.ll_most);
    if (protocol == NcclProtocol::ll128) rate = std::min(rate * (nvlink_ ? 7.0 / 9.0 : 0.915), bandwidth(protocol));
    const double inside = nvlink_ ? kTreeNvlink[p] : kTreePcie[p];
    const double latency = kTreeBase[p] + 2.0 * ((placement_.ranks_a_node - 1) * inside +
                                                 std::log2(1.0 * placement_.nodes) * kTreeNetwork[p]);
    return latency + bytes() * 1e-3 / (0.5 * rate);
  }

  /// Measured: from five GPUs of a node on Hopper, from six on Blackwell; all_reduce alone.
  [[nodiscard]] bool has_nvls() const {
    const int least = cluster_.architecture == Architecture::blackwell ? 6 : 5;
    return cluster_.nvls && cluster_.interconnect == Interconnect::nvswitch && placement_.ranks_a_node >= least &&
           collective_.kind == CollectiveKind::all_reduce;
  }
  [[nodiscard]] double nvls_us() const {
    double rate = kNvlsOfLinks * links_.bus.value() * 1e-9;
    double latency = kNvlsBase;
    if (placement_.nodes > 1) {
      rate = std::min(rate, links_.node.value() * 1e-9);
      latency += 2.0 * std::log2(1.0 * placement_.nodes) * kNvlsNetwork;
    }
    return latency + bytes() * 1e-3 / rate;
  }

  [[nodiscard]] double bytes() const { return static_cast<double>(collective_.bytes); }

  const Cluster& cluster_;
  const Placement& placement_;
  const GroupLinks& links_;
  const Collective& collective_;
  bool nvlink_;
  double best_us_ = 1e300;
  NcclChoice choice_;
};

/// Thread blocks for so many bytes: fewer while each would have less than a step's worth.
void set_blocks(NcclChoice& choice, const GroupLinks& links, int ranks, std::int64_t bytes) {
  int threads = choice.protocol == NcclProtocol::ll128 ? kLl128Threads : kThreads;
  std::int64_t a_thread = choice.protocol == NcclProtocol::simple ? kSimpleBytesAThread : kLlBytesAThread;
  if (choice.algorithm == NcclAlgorithm::ring && choice.protocol == NcclProtocol::ll) a_thread *= ranks;
  const int most = choice.algorithm == NcclAlgorithm::nvls ? kNvlsChannels : links.channels;
  const std::int64_t wanted = bytes / (threads * a_thread);
  choice.channels = static_cast<int>(std::clamp<std::int64_t>(wanted, 1, most));
  if (choice.channels == most && choice.protocol == NcclProtocol::ll) {  // shares are whole cells
    const std::int64_t share = (bytes / most + kCell - 1) / kCell * kCell;
    if (share > 0) choice.channels = static_cast<int>(std::clamp<std::int64_t>((bytes + share - 1) / share, 1, most));
  }
  while (choice.channels == 1 && threads > kLeastThreads && bytes < threads * a_thread) threads /= 2;
  choice.threads = threads + (choice.protocol == NcclProtocol::simple ? kSimpleWarps : 0);
}

}  // namespace

int ring_steps(CollectiveKind kind, int ranks) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::barrier: return 2 * (ranks - 1);
    case CollectiveKind::send_recv:
    case CollectiveKind::peer_copy:
    case CollectiveKind::all_to_all: return 1;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce: break;
  }
  return ranks - 1;
}

int pair_channels(int ranks, std::int64_t bytes) {
  int power = 1;
  while (power < ranks) power *= 2;
  int most = std::max(1, kPairChannels / power);
  while (most < kPairChannels && bytes >= most * kLongPair) most *= 2;
  const std::int64_t wanted = (bytes + kPairBytesAChannel - 1) / kPairBytesAChannel;
  return static_cast<int>(std::clamp<std::int64_t>(wanted, 1, most));
}

NcclChoice nccl_choice(const Cluster& cluster, const Placement& placement, const GroupLinks& links,
                       const Collective& collective) {
  NcclChoice choice;
  const bool pairs = collective.kind == CollectiveKind::send_recv || collective.kind == CollectiveKind::all_to_all;
  if (pairs) {
    choice.algorithm = NcclAlgorithm::direct;
    choice.threads = kLl128Threads;
    if (collective.kind == CollectiveKind::send_recv) {
      choice.channels = pair_channels(placement.ranks, collective.bytes);
      return choice;
    }
    const std::int64_t share = collective.bytes / std::max(1, placement.ranks);
    const std::int64_t own = (share + kPairBytesAChannel * 8 - 1) / (kPairBytesAChannel * 8);
    choice.channels = static_cast<int>(
        std::min<std::int64_t>(kPairChannels, (placement.ranks - 1) * pair_channels(placement.ranks, share) + own));
    return choice;
  }
  choice = Tuner(cluster, placement, links, collective).best();
  set_blocks(choice, links, placement.ranks, collective.bytes);
  return choice;
}

}  // namespace ridgeline

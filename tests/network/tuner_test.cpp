// NCCL's choice against its tuner written down plainly: every algorithm and protocol has a latency and a rate, the
// least time wins.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/network/nccl_choice.h"

namespace ridgeline {
namespace {

struct Tuned {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  double us = 1e300;
  void offer(NcclAlgorithm a, NcclProtocol p, double time) {
    if (time < us) algorithm = a, protocol = p, us = time;
  }
};

/// NCCL 2.30, src/graph/tuning.cc, of GPUs of an architecture from Hopper on.
Tuned slow_tuner(CollectiveKind kind, double bytes, int ranks, int nodes, bool nvlink, bool nvls, double node_gb_s,
                 double link_gb_s, int channels) {
  const bool around = kind == CollectiveKind::all_reduce, rooted = kind == CollectiveKind::broadcast;
  const double n = ranks, local = n / nodes, bus = nodes == 1 ? link_gb_s : std::min(link_gb_s, node_gb_s);
  const double steps = around ? 2 * (n - 1) : rooted ? n : n - 1;
  const double node_steps = nodes == 1 ? 0 : std::min(steps, (around ? 2.0 * (nodes - 1) : nodes - 1.0) + 1);
  const double ratio = rooted ? 1.0 : around ? n / (2 * (n - 1)) : n / (n - 1);
  const std::array<double, 3> ring_base{6.6, 14.0, 8.4}, tree_base{6.8, 14.0, 8.4}, ring_net{2.7, 4.0, 14.0},
      tree_net{5.0, 8.5, 14.0};
  const std::array<double, 3> ring_in = nvlink ? std::array{0.6, 1.9, 3.4} : std::array{1.0, 2.5, 5.7};
  const std::array<double, 3> tree_in = nvlink ? std::array{0.6, 1.25, 4.0} : std::array{1.0, 1.9, 4.0};
  const std::array<double, 3> ring_rate{std::min(141.0, 0.5 * bus), std::min(0.92 * bus, channels * 36.7), bus};
  const double tree_most = std::min(0.92 * bus, channels * 38.7);
  const std::array<double, 3> tree_rate{std::min(tree_most / 3.8, 141.0),
                                        std::min(tree_most * (nvlink ? 7.0 / 9.0 : 0.915), ring_rate[1]), tree_most};
  Tuned tuned;
  for (std::size_t p = 0; p < 3; ++p) {
    if (p == 1 && !nvlink) continue;
    const double around_ring = ring_base[p] + (steps - node_steps) * ring_in[p] + node_steps * ring_net[p];
    tuned.offer(NcclAlgorithm::ring, static_cast<NcclProtocol>(p), around_ring + bytes / 1e3 / (ring_rate[p] * ratio));
    const double up_and_down = tree_base[p] + 2 * ((local - 1) * tree_in[p] + std::log2(1.0 * nodes) * tree_net[p]);
    if (around)
      tuned.offer(NcclAlgorithm::tree, static_cast<NcclProtocol>(p), up_and_down + bytes / 1e3 / (0.5 * tree_rate[p]));
  }
  if (!nvls || !around || local < 5) return tuned;
  double rate = 0.73 * link_gb_s;
  if (nodes > 1) rate = std::min(rate, node_gb_s);
  tuned.offer(nodes == 1 ? NcclAlgorithm::nvls : NcclAlgorithm::nvls_tree, NcclProtocol::simple,
              25.0 + 2 * 18.0 * std::log2(1.0 * nodes) + bytes / 1e3 / rate);
  return tuned;
}

TEST(NcclTuner, the_least_of_all_estimates_is_chosen) {
  std::array<int, 6> chosen{};
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::broadcast})
    for (const int nodes : {1, 2, 8})
      for (const int local : {1, 2, 4, 5, 8})
        for (const bool nvlink : {true, false})
          for (const bool nvls : {true, false})
            for (const double node_gb_s : {20.0, 60.0, 400.0})
              for (const double link_gb_s : {25.0, 120.0, 450.0})
                for (const int channels : {2, 24})
                  for (double bytes = 1000; bytes < 1e10; bytes *= 1.7) {
                    const int ranks = nodes * local;
                    if (ranks == 1) continue;
                    Cluster cluster;
                    cluster.architecture = Architecture::hopper;
                    cluster.interconnect = Interconnect::nvswitch;
                    cluster.nvls = nvls;
                    GroupLinks links;
                    links.kind = nvlink ? CollectiveLimiter::links : CollectiveLimiter::pcie;
                    links.bus = BytesPerSecond{link_gb_s * 1e9};
                    links.node = BytesPerSecond{node_gb_s * 1e9};
                    links.channels = channels;
                    const auto size = static_cast<std::int64_t>(bytes);
                    const Placement at{.ranks = ranks, .ranks_a_node = local, .nodes = nodes};
                    const NcclChoice choice =
                        nccl_choice(cluster, at, links, {.kind = kind, .ranks = ranks, .bytes = size});
                    const Tuned tuned = slow_tuner(kind, static_cast<double>(size), ranks, nodes, nvlink, nvls,
                                                   node_gb_s, link_gb_s, channels);
                    ASSERT_EQ(choice.algorithm, tuned.algorithm)
                        << name_of(kind) << " " << size << " " << nodes << "x" << local;
                    ASSERT_EQ(choice.protocol, tuned.protocol)
                        << name_of(kind) << " " << size << " " << nodes << "x" << local;
                    ++chosen[static_cast<std::size_t>(choice.algorithm)];
                  }
  for (const NcclAlgorithm algorithm :
       {NcclAlgorithm::ring, NcclAlgorithm::tree, NcclAlgorithm::nvls, NcclAlgorithm::nvls_tree})
    EXPECT_GT(chosen[static_cast<std::size_t>(algorithm)], 0) << name_of(algorithm);
}

NcclChoice of_bytes(CollectiveKind kind, int ranks, std::int64_t bytes, int channels = 24, bool ring = true) {
  Cluster cluster;
  cluster.architecture = Architecture::hopper;
  cluster.interconnect = Interconnect::mesh;
  GroupLinks links;
  links.bus = BytesPerSecond{450e9};
  links.channels = channels;
  links.ring = ring;
  return nccl_choice(cluster, {.ranks = ranks, .ranks_a_node = ranks}, links,
                     {.kind = kind, .ranks = ranks, .bytes = bytes});
}

TEST(NcclTuner, without_a_ring_only_trees_and_chains_are_left) {
  const NcclChoice gather = of_bytes(CollectiveKind::all_gather, 3, 1 << 20, 24, false);
  EXPECT_EQ(gather.algorithm, NcclAlgorithm::ring);
  EXPECT_EQ(gather.protocol, NcclProtocol::simple);
  for (const std::int64_t bytes : {1000, 1 << 20, 1 << 30})
    EXPECT_EQ(of_bytes(CollectiveKind::all_reduce, 3, bytes, 24, false).algorithm, NcclAlgorithm::tree);
}

TEST(NcclTuner, pairs_have_channels_by_their_bytes_and_their_group) {
  // 8 KiB a channel; of a group of four ranks eight channels a pair, twice as many for every doubling from 8 x 32 MiB
  // on.
  EXPECT_EQ(pair_channels(2, 1), 1);
  EXPECT_EQ(pair_channels(2, 8192), 1);
  EXPECT_EQ(pair_channels(2, 8193), 2);
  EXPECT_EQ(pair_channels(2, 1 << 20), 16);
  EXPECT_EQ(pair_channels(4, 1 << 20), 8);
  EXPECT_EQ(pair_channels(3, 1 << 20), 8) << "as of four";
  EXPECT_EQ(pair_channels(4, (8LL << 25) - 1), 8);
  EXPECT_EQ(pair_channels(4, 8LL << 25), 16);
  EXPECT_EQ(pair_channels(4, 16LL << 25), 32);
  EXPECT_EQ(pair_channels(64, 1 << 20), 1);
  const NcclChoice pair = of_bytes(CollectiveKind::send_recv, 2, 100'000);
  EXPECT_EQ(pair.algorithm, NcclAlgorithm::direct);
  EXPECT_EQ(pair.channels, 13);
  EXPECT_EQ(pair.threads, 640);
  // All to all: three pairs of 25 kB, four channels each, and one for the own share of up to 64 KiB.
  EXPECT_EQ(of_bytes(CollectiveKind::all_to_all, 4, 100'000).channels, 3 * 4 + 1);
  EXPECT_EQ(of_bytes(CollectiveKind::all_to_all, 4, 4 * 65536).channels, 3 * 8 + 1);
  EXPECT_EQ(of_bytes(CollectiveKind::all_to_all, 4, 4 * 65540).channels, 3 * 8 + 2);
  EXPECT_EQ(of_bytes(CollectiveKind::all_to_all, 8, 1 << 30).channels, 32) << "no more than there are";
  EXPECT_EQ(of_bytes(CollectiveKind::all_to_all, 8, 1 << 30).algorithm, NcclAlgorithm::direct);
}

TEST(NcclTuner, blocks_and_threads_have_a_steps_worth_of_bytes_each) {
  // LL, ring of 8: 8 bytes a thread and rank.
  const auto at = [](std::int64_t bytes) { return of_bytes(CollectiveKind::all_gather, 8, bytes); };
  ASSERT_EQ(at(1000).protocol, NcclProtocol::ll);
  EXPECT_EQ(at(512 * 64 * 2).channels, 2);
  EXPECT_EQ(at(512 * 64 * 2 - 1).channels, 1);
  EXPECT_EQ(at(512 * 64).threads, 512);
  EXPECT_EQ(at(512 * 64 - 1).threads, 256);
  EXPECT_EQ(at(256 * 64 - 1).threads, 128);
  EXPECT_EQ(at(1).threads, 128) << "and no fewer";
  const NcclChoice large = at(1 << 30);
  ASSERT_EQ(large.protocol, NcclProtocol::simple);
  EXPECT_EQ(large.threads, 512 + 32) << "a warp that waits";
  EXPECT_EQ(large.channels, 24);
}

}  // namespace
}  // namespace ridgeline

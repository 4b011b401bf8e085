// The law of collectives with constants so round that each part of a time can be told apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/network/collective_law.h"
#include "sim/network/collective_range.h"

namespace ridgeline {
namespace {

/// Each constant another power of ten or a small factor, so that no two mistakes give the same sum.
NetworkConstants round_constants() {
  return {.call_us = 4,
          .loop_us = 2,
          .start_us = 1000,
          .wide_us = 0.6,
          .ll_step_us = 10,
          .ll_channel_gb_s = 1,
          .bulk_start_us = 3000,
          .ll128_step_us = 20,
          .ll128_share = 0.5,
          .simple_step_us = 30,
          .simple_share = 0.25,
          .reduce_share = 2,
          .gather_share = 4,
          .ramp_us = 0.1,
          .unaligned = 3,
          .nvls_start_us = 5000,
          .nvls_share = 0.25,
          .nvls_ramp_us = 0.5,
          .pair_start_us = 7000,
          .pair_bulk_us = 0,
          .pair_fill_us = 0.2,
          .pair_share = 0.5,
          .pair_channel_gb_s = 3,
          .peer_us = 40,
          .exchange_share = 0.8};
}

struct Case {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t bytes = 4'000'000;
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  int channels = 1;
  bool ring = true;
};

/// Four GPUs whose links carry 10 GB/s: 4 MB take 400 us.
LawTime in_a_node(const Case& one) {
  GroupLinks links;
  links.kind = CollectiveLimiter::pcie;
  links.bus = BytesPerSecond{10e9};
  links.ring = one.ring;
  const NcclChoice choice{
      .algorithm = one.algorithm, .protocol = one.protocol, .channels = one.channels, .threads = 128};
  return collective_law({.kind = one.kind, .ranks = 4, .bytes = one.bytes}, {.ranks = 4, .ranks_a_node = 4}, links,
                        choice, round_constants());
}
double us(const Case& one) { return in_microseconds(in_a_node(one).time); }

TEST(LawByHand, ll_sends_flags_beside_data_or_waits_for_its_channels) {
  // An all_reduce works on 7/4 of the buffer; its six steps take 10 us each.
  EXPECT_NEAR(us({.protocol = NcclProtocol::ll, .channels = 100}), 1000 + 6 * 10 + 2 * 700, 1e-6);
  EXPECT_NEAR(us({.protocol = NcclProtocol::ll, .channels = 2}), 1000 + 6 * 10 + 3500, 1e-6);
  EXPECT_NEAR(us({.kind = CollectiveKind::all_gather, .protocol = NcclProtocol::ll, .channels = 100}),
              1000 + 3 * 10 + 2 * 400, 1e-6)
      << "the own share is worked on too";
}

TEST(LawByHand, ll128_and_simple_have_their_own_steps_and_shares) {
  EXPECT_NEAR(us({.protocol = NcclProtocol::ll128}), 3000 + 6 * 20 + 700 / 0.5, 1e-6);
  // Simple: 3/2 of the buffer over the wire at a quarter, 1/4 of it kept at twice the links' rate.
  const double sent = 600 / 0.25;
  EXPECT_NEAR(us({}), 3000 + 6 * 30 + sent + 100 / 2.0 + 0.1 * std::sqrt(sent), 1e-6);
  const double gathered = 300 / 0.25;
  const Case gather{.kind = CollectiveKind::all_gather};
  EXPECT_NEAR(us(gather), 3000 + 3 * 30 + gathered + 100 / 4.0 + 0.1 * std::sqrt(gathered), 1e-6);
  Case scatter = gather, uneven = gather;
  scatter.kind = CollectiveKind::reduce_scatter;
  EXPECT_NEAR(us(scatter), us(gather), 1e-9);
  uneven.bytes += 32;  // eight bytes a rank
  EXPECT_NEAR(us(uneven) - 3090, 3 * (us(gather) - 3090), 0.1) << "loads of sixteen bytes";
  scatter.bytes += 32;
  EXPECT_NEAR(us(scatter), us(gather), 0.1);
}

TEST(LawByHand, a_broadcast_takes_one_step_and_a_chain_passes_the_whole_buffer) {
  const double sent = 400 / 0.25;
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce})
    EXPECT_NEAR(us({.kind = kind}), 3000 + 30 + sent + 0.1 * std::sqrt(sent), 1e-6);
  EXPECT_NEAR(us({.ring = false}), 3000 + 6 * 30 + sent + 300 / 2.0 + 0.1 * std::sqrt(sent), 1e-6);
}

TEST(LawByHand, switches_add_up_and_pairs_are_limited_by_links_or_channels) {
  const double through = 400 / 0.25;
  for (const NcclAlgorithm algorithm : {NcclAlgorithm::nvls, NcclAlgorithm::nvls_tree})
    EXPECT_NEAR(us({.algorithm = algorithm}), 5000 + through + 0.5 * std::sqrt(through), 1e-6);
  const double link = 400 / 0.5, channel = 4000 / 3.0;
  EXPECT_NEAR(us({.kind = CollectiveKind::send_recv, .channels = 8}), 7000 + link + 0.2 * std::sqrt(link), 1e-6);
  EXPECT_NEAR(us({.kind = CollectiveKind::send_recv, .channels = 1}), 7000 + channel + 0.2 * std::sqrt(channel), 1e-6);
  const double exchange = 300 / (0.5 * 0.8);
  EXPECT_NEAR(us({.kind = CollectiveKind::all_to_all, .channels = 8}),
              7000 + 2 * 40 + exchange + 0.2 * std::sqrt(exchange), 1e-6);
}

TEST(LawByHand, exchanges_from_a_mebibyte_wait_for_unaligned_loads) {
  for (const std::int64_t bytes : {(1 << 20) - 8, (1 << 20), (1 << 20) + 8}) {
    const double even = 0.75e-4 * static_cast<double>(bytes) / 0.4, sent = bytes == (1 << 20) + 8 ? 3 * even : even;
    EXPECT_NEAR(us({.kind = CollectiveKind::all_to_all, .bytes = bytes, .channels = 8}),
                7000 + 2 * 40 + sent + 0.2 * std::sqrt(sent), 1e-3)
        << bytes;
  }
}

TEST(LawByHand, what_limits_a_node_is_the_longer_part) {
  EXPECT_EQ(in_a_node({.protocol = NcclProtocol::ll, .channels = 100}).limiter, CollectiveLimiter::pcie);
  EXPECT_EQ(in_a_node({.bytes = 1000, .protocol = NcclProtocol::ll, .channels = 100}).limiter,
            CollectiveLimiter::latency);
}

/// Four nodes of `local` GPUs, 1 GB/s out of a node, 100 us a message; LL inside.
LawTime over_nodes(CollectiveKind kind, int local, double node_gb_s = 1, double hop_us = 100) {
  const GroupLinks links{
      .bus = BytesPerSecond{10e9}, .node = BytesPerSecond{node_gb_s * 1e9}, .hop = microseconds(hop_us)};
  const NcclChoice choice{.protocol = NcclProtocol::ll, .channels = 100, .threads = 128};
  return collective_law({.kind = kind, .ranks = 4 * local, .bytes = 4'000'000},
                        {.ranks = 4 * local, .ranks_a_node = local, .nodes = 4}, links, choice, round_constants());
}
double pipelined(double latency, double flow) { return latency + flow + 2 * std::sqrt(latency * flow); }

TEST(LawByHand, what_leaves_a_node_is_counted_by_kind) {
  const auto took = [](CollectiveKind kind, int local) { return in_microseconds(over_nodes(kind, local).time); };
  // One GPU a node: nothing flows inside. Four nodes are two levels of a tree, an all_reduce's go up and down.
  EXPECT_NEAR(took(CollectiveKind::all_reduce, 1), 1000 + pipelined(400, 6000), 1e-6);
  EXPECT_NEAR(took(CollectiveKind::all_gather, 1), 1000 + pipelined(200, 3000), 1e-6);
  EXPECT_NEAR(took(CollectiveKind::reduce_scatter, 1), 1000 + pipelined(200, 3000), 1e-6);
  EXPECT_NEAR(took(CollectiveKind::broadcast, 1), 1000 + pipelined(200, 4000), 1e-6);
  EXPECT_NEAR(took(CollectiveKind::barrier, 1), 1000 + pipelined(400, 4000), 1e-6);
  EXPECT_NEAR(took(CollectiveKind::all_to_all, 1), 1000 + pipelined(100, 3000), 1e-6);
  EXPECT_NEAR(took(CollectiveKind::send_recv, 1), 1000 + pipelined(100, 4000), 1e-6);
  // Two GPUs a node: each sends 6/8 of its buffer to the others, both over the node's NICs.
  EXPECT_NEAR(took(CollectiveKind::all_to_all, 2), 7000 + pipelined(100, 6000), 1e-6);
  EXPECT_NEAR(took(CollectiveKind::all_reduce, 2), 1000 + 2 * 10 + pipelined(400, 6000), 1e-6);
  EXPECT_NEAR(took(CollectiveKind::send_recv, 2), 7000 + pipelined(100, 4000), 1e-6)
      << "the neighbour is in another node";
}

TEST(LawByHand, the_slower_of_node_and_network_sets_the_flow) {
  // Two GPUs work on 3/2 of 4 MB at 10 GB/s with as many flags: 1200 us inside.
  const LawTime inside = over_nodes(CollectiveKind::all_reduce, 2, 100, 1);
  EXPECT_NEAR(in_microseconds(inside.time), 1020 + pipelined(4, 1200), 1e-6);
  EXPECT_EQ(inside.limiter, CollectiveLimiter::links);
  EXPECT_EQ(over_nodes(CollectiveKind::all_reduce, 2, 1, 1).limiter, CollectiveLimiter::network);
  EXPECT_EQ(over_nodes(CollectiveKind::all_reduce, 2, 100, 100).limiter, CollectiveLimiter::latency)
      << "1020 + 400 > 1200";
}

TEST(LawByHand, wide_blocks_take_longer_to_start_and_each_peer_of_an_exchange_a_little) {
  GroupLinks links;
  links.bus = BytesPerSecond{10e9};
  const auto took = [&](const Collective& one, const NcclChoice& choice) {
    const int ranks = static_cast<int>(one.ranks);
    return in_microseconds(
        collective_law(one, {.ranks = ranks, .ranks_a_node = ranks}, links, choice, round_constants()).time);
  };
  const Collective reduce{.ranks = 2, .bytes = 10};
  const auto of_threads = [&](int threads) {
    return took(reduce, {.protocol = NcclProtocol::ll, .channels = 100, .threads = threads});
  };
  EXPECT_NEAR(of_threads(512) - of_threads(128), 0.6, 1e-9);
  EXPECT_NEAR(of_threads(256) - of_threads(128), 0.2, 1e-9) << "a third of the way";
  const auto exchange = [&](int ranks) {
    return took({.kind = CollectiveKind::all_to_all, .ranks = ranks, .bytes = 0}, {.channels = 8});
  };
  EXPECT_NEAR(exchange(8) - exchange(2), 6 * 40, 1e-9);
}

// The channels that send are those of the peers; one more copies the rank's own share.
TEST(LawByHand, an_exchange_of_two_sends_over_half_of_the_channels) {
  GroupLinks links;
  links.bus = BytesPerSecond{1000e9};
  const Collective one{.kind = CollectiveKind::all_to_all, .ranks = 2, .bytes = 48'000'000};
  const double sent = 24000 / (16 * 3.0 * 0.8);
  EXPECT_NEAR(
      in_microseconds(
          collective_law(one, {.ranks = 2, .ranks_a_node = 2}, links, {.channels = 32}, round_constants()).time),
      7000 + sent + 0.2 * std::sqrt(sent), 1e-6);
}

TEST(LawByHand, pairs_of_more_than_sixteen_kibibytes_a_peer_start_later) {
  GroupLinks links;
  links.bus = BytesPerSecond{1e15};
  NetworkConstants constants = round_constants();
  constants.pair_bulk_us = 90;
  constants.pair_channel_gb_s = 1e9;
  const auto took = [&](CollectiveKind kind, int ranks, std::int64_t bytes) {
    return in_microseconds(collective_law({.kind = kind, .ranks = ranks, .bytes = bytes},
                                          {.ranks = ranks, .ranks_a_node = ranks}, links, {.channels = 8}, constants)
                               .time);
  };
  constexpr std::int64_t kPeer = 1 << 14;
  EXPECT_NEAR(took(CollectiveKind::send_recv, 2, kPeer), 7000, 0.1);
  EXPECT_NEAR(took(CollectiveKind::send_recv, 2, kPeer + 1), 7090, 0.1);
  EXPECT_NEAR(took(CollectiveKind::all_to_all, 4, 4 * kPeer), 7080, 0.1);
  EXPECT_NEAR(took(CollectiveKind::all_to_all, 4, 4 * kPeer + 64), 7170, 0.1);
}

TEST(LawByHand, collectives_count_as_compared_by_kind_and_ranks) {
  const CollectiveRange some{.low = 0.9, .high = 1.1, .ranks_from = 2, .ranks_to = 8, .reductions = 1};
  EXPECT_EQ(not_among(some, {.kind = CollectiveKind::all_reduce}, 8), "");
  EXPECT_NE(not_among(some, {.kind = CollectiveKind::all_gather}, 8), "");
  EXPECT_NE(not_among(some, {.kind = CollectiveKind::all_to_all}, 8), "");
  EXPECT_NE(not_among(some, {.kind = CollectiveKind::broadcast}, 8), "");
  EXPECT_NE(not_among(some, {.kind = CollectiveKind::all_reduce}, 9), "");
  EXPECT_NE(not_among(CollectiveRange{}, {.kind = CollectiveKind::all_reduce}, 2), "");
}

TEST(LawByHand, ranges_are_three_times_as_wide_where_nothing_was_compared) {
  const Placement node{.ranks = 4, .ranks_a_node = 4}, nodes{.ranks = 4, .ranks_a_node = 2, .nodes = 2};
  const auto range = [](std::int64_t bytes, const Placement& at, bool validated) {
    return collective_range(Architecture::hopper, CollectiveLimiter::links, {.ranks = 4, .bytes = bytes}, at,
                            validated);
  };
  const std::int64_t mebi = 1 << 20;
  const CollectiveRange small = range(kShortCollective, node, true), middle = range(kShortCollective + 1, node, true),
                        large = range(kMiddleCollective + 1, node, true), far = range(mebi, nodes, true);
  const auto differ = [](const CollectiveRange& a, const CollectiveRange& b) {
    return a.low != b.low || a.high != b.high;
  };
  EXPECT_TRUE(differ(small, middle));
  EXPECT_TRUE(differ(middle, large));
  EXPECT_EQ(range(1, node, true).low, small.low);
  EXPECT_EQ(range(kMiddleCollective, node, true).high, middle.high);
  EXPECT_EQ(range(100 * mebi, node, true).high, large.high);
  EXPECT_EQ(range(1, nodes, true).low, far.low);
  EXPECT_GT(far.high, large.high) << "networks differ more than links";
  const CollectiveRange wide = range(100 * mebi, node, false), widest = range(mebi, nodes, false);
  EXPECT_NEAR(1 - wide.low, 3 * (1 - large.low), 1e-9);
  EXPECT_NEAR(wide.high - 1, 3 * (large.high - 1), 1e-9);
  EXPECT_NEAR(widest.high - 1, 3 * (far.high - 1), 1e-9);
  EXPECT_EQ(widest.low, std::max(0.25, 1 - 3 * (1 - far.low)));
}

}  // namespace
}  // namespace ridgeline

// Links of a group: what each interconnect gives, and what several groups share.
#include "sim/network/group_links.h"

#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"
#include "sim/network/cluster_rows.h"
#include "sim/network/nccl_choice.h"

namespace ridgeline {
namespace {

/// Links of 100 GB/s of which half is payload, slots of 30 GB/s, NICs of 50 GB/s of which 0.8 is payload.
Cluster round_cluster(Interconnect interconnect, int gpus = 4, int nodes = 1) {
  Cluster c;
  c.name = "round";
  c.nodes = nodes, c.gpus = gpus;
  c.interconnect = interconnect;
  c.links = {.count = 3, .rate = BytesPerSecond{100e9}, .efficiency = 0.5, .matrix = {}};
  c.pcie = {.rate = BytesPerSecond{30e9}, .peer_to_peer = true, .host = BytesPerSecond{60e9}};
  c.nics = {.count = 4, .rate = BytesPerSecond{50e9}, .efficiency = 0.8, .latency = microseconds(9)};
  c.oversubscription = 2;
  return c;
}
/// Two links between neighbours of a ring of four.
std::vector<std::vector<int>> ring_of_four() { return {{0, 2, 0, 2}, {2, 0, 2, 0}, {0, 2, 0, 2}, {2, 0, 2, 0}}; }

GroupLinks links_of(const Cluster& cluster, int ranks, int stride = 1) {
  return group_links(cluster, place(cluster, ranks, stride));
}
double gb_s(BytesPerSecond rate) { return rate.value() * 1e-9; }

TEST(GroupLinks, switches_give_all_links_of_a_gpu) {
  const GroupLinks links = links_of(round_cluster(Interconnect::nvswitch), 4);
  EXPECT_EQ(links.kind, CollectiveLimiter::links);
  EXPECT_NEAR(gb_s(links.bus), 150, 1e-9);
  EXPECT_EQ(links.channels, 24);
  EXPECT_EQ(links.node.value(), 0.0);
}

TEST(GroupLinks, a_mesh_gives_its_rings_and_a_part_without_one_a_chain) {
  Cluster cluster = round_cluster(Interconnect::mesh);
  cluster.links.matrix = ring_of_four();
  const GroupLinks whole = links_of(cluster, 4), chain = links_of(cluster, 3), opposite = links_of(cluster, 2, 2);
  EXPECT_NEAR(gb_s(whole.bus), 200, 1e-9) << "two rings of 50 GB/s, each in both directions";
  EXPECT_EQ(whole.channels, 8);
  EXPECT_TRUE(whole.ring);
  EXPECT_FALSE(chain.ring) << "no link from the third back to the first";
  EXPECT_NEAR(gb_s(chain.bus), 50, 1e-9);
  EXPECT_EQ(chain.channels, 2);
  EXPECT_FALSE(opposite.ring);
  EXPECT_EQ(opposite.kind, CollectiveLimiter::links);
  cluster.links.matrix.resize(3);
  EXPECT_EQ(links_of(cluster, 4).kind, CollectiveLimiter::pcie) << "the matrix does not reach the fourth";
}

TEST(GroupLinks, a_bridge_joins_two_neighbours_and_no_more) {
  Cluster cluster = round_cluster(Interconnect::bridge);
  const GroupLinks pair = links_of(cluster, 2);
  EXPECT_EQ(pair.kind, CollectiveLimiter::links);
  EXPECT_NEAR(gb_s(pair.bus), 150, 1e-9);
  EXPECT_EQ(pair.channels, 6);
  cluster.links.count = 20;
  EXPECT_EQ(links_of(cluster, 2).channels, 24) << "no more than switches have";
  for (const GroupLinks& other : {links_of(cluster, 4), links_of(cluster, 2, 2)}) {
    EXPECT_EQ(other.kind, CollectiveLimiter::pcie);
    EXPECT_NEAR(gb_s(other.bus), 0.83 * 30, 1e-9);
    EXPECT_EQ(other.channels, 4);
  }
}

TEST(GroupLinks, without_peer_access_each_byte_passes_the_hosts_memory_twice) {
  Cluster cluster = round_cluster(Interconnect::pcie, 8);
  EXPECT_EQ(links_of(cluster, 2).kind, CollectiveLimiter::pcie);
  cluster.pcie.peer_to_peer = false;
  EXPECT_EQ(links_of(cluster, 2).kind, CollectiveLimiter::host);
  EXPECT_NEAR(gb_s(links_of(cluster, 2).bus), 60 / 4.0, 1e-9) << "two GPUs share 60 GB/s, written and read";
  EXPECT_NEAR(gb_s(links_of(cluster, 8).bus), 60 / 16.0, 1e-9);
  cluster.pcie.host = BytesPerSecond{600e9};
  EXPECT_NEAR(gb_s(links_of(cluster, 2).bus), 0.65 * 30, 1e-9) << "the slot limits";
  cluster.interconnect = Interconnect::none;
  cluster.pcie.peer_to_peer = true;
  EXPECT_EQ(links_of(cluster, 2).kind, CollectiveLimiter::host) << "nothing joins them";
}

TEST(GroupLinks, groups_share_the_nics_of_a_node_and_a_pair_has_one) {
  const Cluster cluster = round_cluster(Interconnect::nvswitch, 8, 4);
  const GroupLinks all = links_of(cluster, 32), across = links_of(cluster, 4, 8);
  EXPECT_NEAR(gb_s(all.node), 4 * 40 / 2.0, 1e-9);
  EXPECT_EQ(all.hop, microseconds(9));
  EXPECT_NEAR(gb_s(across.node), 4 * 40 / 2.0 / 8, 1e-9);
  const GroupLinks pair = pair_links(cluster, place(cluster, 32)), near = pair_links(cluster, place(cluster, 2));
  EXPECT_NEAR(gb_s(pair.node), 40, 1e-9) << "one NIC";
  EXPECT_EQ(pair.hop, microseconds(9));
  EXPECT_NEAR(gb_s(pair_links(cluster, place(cluster, 4, 8)).node), 10, 1e-9) << "a share of the NICs";
  EXPECT_EQ(near.node.value(), 0.0);
  EXPECT_NEAR(gb_s(near.bus), 150, 1e-9);
  const Cluster two = round_cluster(Interconnect::nvswitch, 8, 2);
  EXPECT_NEAR(gb_s(pair_links(two, place(two, 16)).node), 40, 1e-9);
}

TEST(GroupLinks, places_say_stride_and_never_less_than_one_rank_a_node) {
  const Cluster cluster = round_cluster(Interconnect::nvswitch, 8, 4);
  const Placement near = place(cluster, 4, 2), far = place(cluster, 2, 16), both = place(cluster, 2, 8);
  EXPECT_EQ(near.stride, 2);
  EXPECT_EQ(near.ranks_a_node, 4);
  EXPECT_EQ(near.groups_a_nic, 1);
  EXPECT_EQ(far.ranks_a_node, 1);
  EXPECT_EQ(far.nodes, 2);
  EXPECT_EQ(both.groups_a_nic, 8) << "of two nodes already";
}

TEST(GroupLinks, rows_of_a_cluster_say_what_its_groups_have) {
  const auto row = [](const SheetRow& r) { return r.key + " " + r.value + " " + r.unit; };
  const std::vector<SheetRow> rows = derived_rows(round_cluster(Interconnect::nvswitch, 2, 2));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(row(rows[0]), "all_gpus 4 ");
  EXPECT_EQ(row(rows[1]), "node_bus 150.0 GB/s");
  EXPECT_EQ(row(rows[2]), "node_channels 24 ");
  EXPECT_EQ(row(rows[3]), "node_to_nodes 80.0 GB/s");
  for (const SheetRow& one : rows) EXPECT_FALSE(one.source.empty());
  EXPECT_EQ(derived_rows(round_cluster(Interconnect::nvswitch, 1, 2)).size(), 2u);
  EXPECT_EQ(derived_rows(round_cluster(Interconnect::nvswitch, 2, 1)).size(), 3u);
}

class WholeTime : public ::testing::Test {
 protected:
  Cluster cluster = round_cluster(Interconnect::nvswitch, 8, 8);
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  CollectiveTime of(CollectiveKind kind, int ranks, int stride = 1, std::int64_t bytes = 8'000'000) const {
    return collective_time(cluster, gpu, {.kind = kind, .ranks = ranks, .bytes = bytes}, place(cluster, ranks, stride));
  }
};

TEST_F(WholeTime, memory_is_read_and_written_by_kind) {
  // Four ranks, 8 MB: 12 MB of an all_reduce over the wire, 6 MB of the others, 8 MB of a broadcast.
  const auto mb = [&](CollectiveKind kind) { return of(kind, 4).dram.value() * 1e-6; };
  EXPECT_NEAR(mb(CollectiveKind::all_reduce), 8 + 2 * 12, 1e-9);
  EXPECT_NEAR(mb(CollectiveKind::reduce_scatter), 8 + 2 * 6, 1e-9);
  EXPECT_NEAR(mb(CollectiveKind::reduce), 8 + 2 * 8, 1e-9);
  EXPECT_NEAR(mb(CollectiveKind::all_gather), 2 * 8 / 4.0 + 2 * 6, 1e-9);
  EXPECT_NEAR(mb(CollectiveKind::all_to_all), 2 * 8 + 6, 1e-9);
  EXPECT_NEAR(mb(CollectiveKind::broadcast), 2 * 8, 1e-9);
  EXPECT_NEAR(of(CollectiveKind::all_reduce, 4).wire.value(), 12e6, 1e-3);
}

TEST_F(WholeTime, call_bus_and_range_follow_from_the_time) {
  const CollectiveTime time = of(CollectiveKind::all_reduce, 4);
  EXPECT_GT(time.loop, time.time);
  EXPECT_GT(time.call, time.loop) << "back to back a call waits for no event";
  EXPECT_NEAR(time.bus.value(), time.wire.value() / time.loop.value(), 1) << "nccl-tests' bus bandwidth";
  EXPECT_GT(time.low.value(), 0.5 * time.time.value());
  const NcclChoice choice =
      nccl_choice(cluster, place(cluster, 4), links_of(cluster, 4), {.ranks = 4, .bytes = 8'000'000});
  EXPECT_EQ(time.algorithm, choice.algorithm);
  EXPECT_EQ(time.protocol, choice.protocol);
  EXPECT_EQ(time.channels, choice.channels);
  EXPECT_EQ(time.threads, choice.threads);
  gpu.dram.bandwidth = BytesPerSecond{1e9};
  const CollectiveTime slow = of(CollectiveKind::all_reduce, 4);
  EXPECT_NEAR(slow.time.value(), 32e6 / 1e9, 1e-9) << "no faster than the memory";
  EXPECT_EQ(slow.limiter, CollectiveLimiter::gpu);
  EXPECT_NE(time.limiter, CollectiveLimiter::gpu);
}

TEST_F(WholeTime, one_rank_copies_and_empty_buffers_only_start_a_kernel) {
  const CollectiveTime alone = of(CollectiveKind::all_reduce, 1), empty = of(CollectiveKind::all_reduce, 4, 1, 0);
  EXPECT_EQ(alone.dram.value(), 16e6);
  EXPECT_NEAR((alone.time - gpu.launch.kernel_fixed).value(), 16e6 / (0.5 * gpu.dram.bandwidth.value()), 1e-12);
  EXPECT_EQ(of(CollectiveKind::send_recv, 1).dram.value(), 0.0) << "to nobody";
  EXPECT_EQ(empty.dram.value(), 0.0);
  EXPECT_EQ(empty.time, gpu.launch.kernel_fixed);
  for (const CollectiveTime& one : {alone, empty}) {
    EXPECT_EQ(one.limiter, CollectiveLimiter::gpu);
    EXPECT_EQ(one.low, one.time);
    EXPECT_EQ(one.high, one.time);
    EXPECT_GT(one.call, one.time);
  }
  EXPECT_GT(of(CollectiveKind::all_reduce, 4, 1, 1).wire.value(), 0.0);
  EXPECT_GT(of(CollectiveKind::barrier, 4, 1, 0).wire.value(), 0.0) << "a barrier sends something";
}

TEST_F(WholeTime, a_copy_between_devices_is_the_drivers) {
  const CollectiveTime copy = of(CollectiveKind::peer_copy, 2);
  EXPECT_EQ(copy.limiter, CollectiveLimiter::links);
  EXPECT_EQ(copy.wire.value(), 8e6);
  EXPECT_EQ(copy.dram.value(), 8e6);
  EXPECT_GT(copy.time.value(), 8e6 / 150e9);
  EXPECT_EQ(copy.call, copy.time);
  EXPECT_EQ(copy.low, copy.time);
  EXPECT_EQ(copy.high, copy.time);
  EXPECT_NEAR(copy.bus.value(), 8e6 / copy.time.value(), 1);
}

TEST_F(WholeTime, says_what_no_measurement_covers) {
  EXPECT_TRUE(of(CollectiveKind::all_reduce, 8).validated);
  EXPECT_TRUE(of(CollectiveKind::all_reduce, 16).validated);
  EXPECT_TRUE(of(CollectiveKind::all_reduce, 32).validated);
  EXPECT_NE(of(CollectiveKind::all_reduce, 40).why_not.find("over 5 nodes"), std::string::npos);
  EXPECT_NE(of(CollectiveKind::all_reduce, 4, 8).why_not.find("part of the GPUs"), std::string::npos);
  cluster.gpus = 16;
  EXPECT_NE(of(CollectiveKind::all_reduce, 9).why_not.find("more than 8"), std::string::npos);
  EXPECT_TRUE(of(CollectiveKind::all_reduce, 8).validated);
  EXPECT_TRUE(of(CollectiveKind::all_reduce, 32).validated);
  cluster.interconnect = Interconnect::bridge;
  EXPECT_NE(of(CollectiveKind::all_reduce, 2).why_not.find("bridges"), std::string::npos);
  EXPECT_NE(of(CollectiveKind::all_reduce, 4).why_not.find("PCIe"), std::string::npos);
}

}  // namespace
}  // namespace ridgeline

// The law against rings simulated step by step, its limits, and where groups stand.
#include "sim/network/collective_law.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/network/copy_time.h"
#include "sim/network/load_cluster.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMessage = 64 << 20;

/// Ranks in a ring, each with a time at which it has a chunk: a step sends each rank's chunk to the next.
double simulated_ring_us(int ranks, int steps, double chunk_bytes, double gb_s, double step_us) {
  std::vector<double> ready(static_cast<std::size_t>(ranks), 0.0), link_free = ready;
  for (int step = 0; step < steps; ++step) {
    std::vector<double> next(ready.size());
    for (std::size_t rank = 0; rank < ready.size(); ++rank) {
      const std::size_t to = (rank + 1) % ready.size();
      link_free[rank] = std::max(link_free[rank], ready[rank]) + chunk_bytes / gb_s * 1e-3;
      next[to] = link_free[rank] + step_us;
      link_free[rank] = next[to];
    }
    ready = next;
  }
  return *std::max_element(ready.begin(), ready.end());
}

/// Constants of a network that does nothing but send.
NetworkConstants sending_only() {
  NetworkConstants c;
  c.bulk_start_us = 0;
  c.simple_share = 1;
  c.reduce_share = c.gather_share = 1e12;
  c.ramp_us = 0;
  return c;
}

TEST(CollectiveLaw, is_a_ring_simulated_step_by_step_where_ranks_only_send) {
  const NetworkConstants constants = sending_only();
  for (const int ranks : {2, 3, 4, 8}) {
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      GroupLinks links;
      links.bus = BytesPerSecond{300e9};
      Collective collective{.kind = kind, .ranks = ranks, .bytes = kMessage * ranks};
      Placement at{.ranks = ranks, .ranks_a_node = ranks};
      const double law = in_microseconds(collective_law(collective, at, links, NcclChoice{}, constants).time);
      const int steps = kind == CollectiveKind::all_reduce ? 2 * (ranks - 1) : ranks - 1;
      EXPECT_NEAR(law, simulated_ring_us(ranks, steps, 1.0 * kMessage, 300, constants.simple_step_us), 1e-6 * law);
    }
  }
}

TEST(CollectiveLaw, is_never_faster_than_the_links_carry_the_bytes) {
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name);
    if (cluster.gpus < 2) continue;
    const Gpu gpu = load_gpu(cluster.gpu_name);
    for (int ranks = 2; ranks <= cluster.gpus; ++ranks) {
      const Collective one{.kind = CollectiveKind::all_gather, .ranks = ranks, .bytes = 1 << 30};
      const CollectiveTime time = collective_time(cluster, gpu, one, place(cluster, ranks));
      const double links = std::max(cluster.links.rate.value() * cluster.links.count, cluster.pcie.rate.value());
      EXPECT_GE(time.time.value(), time.wire.value() / links) << name << " " << ranks;
      EXPECT_LE(time.low, time.time);
      EXPECT_GE(time.high, time.time);
    }
  }
}

TEST(CollectiveLaw, more_bytes_take_longer_and_faster_links_shorter_with_the_same_protocol_and_channels) {
  const Cluster cluster = load_cluster("hgx-h200");
  const Placement at = place(cluster, 8);
  const GroupLinks links = group_links(cluster, at);
  GroupLinks faster = links;
  faster.bus = links.bus * 1.5;
  for (const NcclProtocol protocol : {NcclProtocol::ll, NcclProtocol::ll128, NcclProtocol::simple}) {
    const NcclChoice choice{.protocol = protocol, .channels = 24};
    double before = 0;
    for (std::int64_t bytes = 1 << 10; bytes <= (1 << 30); bytes *= 2) {
      const Collective one{.kind = CollectiveKind::all_reduce, .ranks = 8, .bytes = bytes};
      const double time = collective_law(one, at, links, choice, network_constants(Architecture::hopper)).time.value();
      EXPECT_GT(time, before);
      EXPECT_LE(collective_law(one, at, faster, choice, network_constants(Architecture::hopper)).time.value(), time);
      before = time;
    }
  }
}

TEST(CollectiveLaw, more_ranks_take_longer_in_one_node_and_over_nodes) {
  const Cluster cluster = load_cluster("dgx-a100", {{"nodes", "16", ""}});
  const Gpu gpu = load_gpu(cluster.gpu_name);
  double before = 0;
  for (const int ranks : {2, 4, 8, 16, 32, 64, 128}) {
    const Collective one{.kind = CollectiveKind::all_reduce, .ranks = ranks, .bytes = 256 << 20};
    const double time = collective_time(cluster, gpu, one, place(cluster, ranks)).time.value();
    EXPECT_GT(time, before) << ranks;
    before = time;
  }
}

TEST(CollectiveLaw, nothing_to_do_is_a_kernel_at_most) {
  const Cluster cluster = load_cluster("hgx-h200");
  const Gpu gpu = load_gpu(cluster.gpu_name);
  const CollectiveTime alone = collective_time(cluster, gpu, {.bytes = 1024}, place(cluster, 1));
  EXPECT_EQ(alone.algorithm, NcclAlgorithm::none);
  EXPECT_LT(alone.time.value(), 2e-6);
  EXPECT_EQ(collective_time(cluster, gpu, {.ranks = 8, .bytes = 0}, place(cluster, 8)).wire.value(), 0.0);
  EXPECT_THROW((void)collective_time(cluster, gpu, {.ranks = 8, .bytes = -1}, place(cluster, 8)), UserError);
}

TEST(Placement, is_that_of_neighbours_first) {
  const Cluster cluster = load_cluster("dgx-a100", {{"nodes", "8", ""}});
  const Placement tensor = place(cluster, 8, 1), data = place(cluster, 8, 8), mixed = place(cluster, 16, 4);
  EXPECT_EQ(tensor.nodes, 1);
  EXPECT_EQ(tensor.groups_a_nic, 1);
  EXPECT_EQ(data.nodes, 8);
  EXPECT_EQ(data.ranks_a_node, 1);
  EXPECT_EQ(data.groups_a_nic, 8);  // eight rings leave each node at once
  EXPECT_EQ(mixed.ranks_a_node, 2);
  EXPECT_EQ(mixed.nodes, 8);
  EXPECT_EQ(mixed.groups_a_nic, 4);
  try {
    (void)place(cluster, 8, 16);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("113 GPUs"));
  }
}

TEST(Placement, groups_that_leave_a_node_together_share_its_nics) {
  const Cluster cluster = load_cluster("dgx-a100", {{"nodes", "8", ""}});
  const Gpu gpu = load_gpu(cluster.gpu_name);
  const Collective one{.kind = CollectiveKind::all_reduce, .ranks = 8, .bytes = 1 << 30};
  Placement alone = place(cluster, 8, 8);
  const double shared = collective_time(cluster, gpu, one, alone).time.value();
  alone.groups_a_nic = 1;
  EXPECT_GT(shared, 7.0 * collective_time(cluster, gpu, one, alone).time.value());
}

TEST(CollectiveLaw, pcie_without_peer_access_goes_through_the_host_and_is_the_slowest) {
  const Collective one{.kind = CollectiveKind::all_reduce, .ranks = 2, .bytes = 256 << 20};
  const auto time_on = [&](const char* name, const std::vector<config::Override>& changes) {
    const Cluster cluster = load_cluster(name, changes);
    return collective_time(cluster, load_gpu(cluster.gpu_name), one, place(cluster, 2));
  };
  const CollectiveTime host = time_on("rtx3090-x2-pcie", {});
  const CollectiveTime direct = time_on("rtx3090-x2-pcie", {{"pcie.peer_to_peer", "true", ""}});
  const CollectiveTime bridge = time_on("rtx3090-x2-nvlink", {});
  EXPECT_EQ(host.limiter, CollectiveLimiter::host);
  EXPECT_EQ(direct.limiter, CollectiveLimiter::pcie);
  EXPECT_EQ(bridge.limiter, CollectiveLimiter::links);
  EXPECT_GT(host.time, direct.time);
  EXPECT_GT(direct.time, bridge.time);
  EXPECT_FALSE(host.validated);
  EXPECT_FALSE(host.why_not.empty());
}

TEST(CollectiveLaw, kernels_have_the_names_of_traces) {
  const Collective one{.kind = CollectiveKind::all_reduce, .type = DType::fp32, .ranks = 4, .bytes = 1 << 20};
  CollectiveTime time;
  time.algorithm = NcclAlgorithm::ring;
  EXPECT_EQ(nccl_kernel_name(one, time), "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(nccl_kernel_name({.kind = CollectiveKind::all_gather}, time),
            "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  time.algorithm = NcclAlgorithm::direct;
  EXPECT_EQ(nccl_kernel_name({.kind = CollectiveKind::send_recv}, time),
            "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)");
}

TEST(CollectiveLaw, long_exchanges_of_shares_that_are_no_multiple_of_sixteen_bytes_take_longer) {
  const Cluster cluster = load_cluster("h200-x4");
  const Gpu gpu = load_gpu(cluster.gpu_name);
  const auto time_of = [&](std::int64_t bytes) {
    const Collective one{.kind = CollectiveKind::all_to_all, .ranks = 4, .bytes = bytes};
    return collective_time(cluster, gpu, one, place(cluster, 4)).time;
  };
  EXPECT_GT(time_of((64 << 20) + 8), 1.1 * time_of(64 << 20));
  EXPECT_LT(time_of((256 << 10) + 8), 1.01 * time_of(256 << 10)) << "short ones wait for latency";
}

TEST(CopyTime, between_gpus_through_the_hosts_memory_uses_it_twice) {
  Cluster cluster = load_cluster("rtx3090-x2-pcie");
  const Gpu gpu = load_gpu(cluster.gpu_name);
  cluster.pcie.rate = BytesPerSecond{25e9};
  cluster.pcie.host = BytesPerSecond{20e9};
  const Bytes size{1e9};
  const auto seconds = [&] { return copy_time(cluster, gpu, CopyRoute::peer, size, 0, 1).value(); };
  EXPECT_NEAR(seconds(), 1e9 / 10e9, 1e-3);
  cluster.pcie.host = BytesPerSecond{80e9};
  EXPECT_NEAR(seconds(), 1e9 / 25e9, 1e-3) << "the slot is what limits";
  cluster.pcie.host = BytesPerSecond{20e9};
  cluster.pcie.peer_to_peer = true;
  EXPECT_NEAR(seconds(), 1e9 / 25e9, 1e-3) << "the host's memory is passed by";
}

}  // namespace
}  // namespace ridgeline

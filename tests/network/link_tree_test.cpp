// Trees of sockets, root complexes and PCIe switches: what a ring over them carries, and what flows share.
#include "sim/network/link_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/config_error.h"
#include "sim/config/parse_yaml.h"
#include "sim/hardware/load_gpu.h"
#include "sim/network/collective_time.h"
#include "sim/network/group_links.h"
#include "sim/network/load_cluster.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kDirect = 0.83 * 30, kHost = 0.65 * 30;  // of slots of 30 GB/s

/// A board with peer access; slots of 30 GB/s, sockets of 10, a host's memory of 60.
Cluster machine(const std::string& tree, const std::string& more = "", const std::string& host = "60 GB/s") {
  return cluster_from_yaml("source: mine\ngpu: nvidia-l40s\ngpus: 8\nlinks: {tree: {value: " + tree +
                               "}}\n"
                               "pcie: {rate: 30 GB/s, socket: 10 GB/s, host: " +
                               host + more + "}\n",
                           "mine.yaml");
}
const std::string kTwoSockets =
    "[{socket: [{switch: [0, 1]}, {switch: [2, 3]}]}, {socket: [{switch: [4, 5]}, {switch: [6, 7]}]}]";

double ring_gb_s(const Cluster& cluster, int ranks, int stride = 1, int groups = 1) {
  Placement at = place(cluster, ranks, stride);
  at.groups_at_once = groups;
  return group_links(cluster, at).bus.value() * 1e-9;
}

TEST(LinkTree, the_narrowest_edge_of_the_ring_sets_its_rate) {
  const Cluster cluster = machine(kTwoSockets);
  EXPECT_NEAR(ring_gb_s(cluster, 2), kDirect, 1e-9) << "one switch";
  EXPECT_NEAR(ring_gb_s(cluster, 4), kDirect, 1e-9) << "each uplink is crossed once in each direction";
  EXPECT_NEAR(ring_gb_s(cluster, 8), 10, 1e-9) << "the link between sockets";
  EXPECT_EQ(level_between(cluster, 0, 1), PcieLevel::pix);
  EXPECT_EQ(level_between(cluster, 1, 2), PcieLevel::node);
  EXPECT_EQ(level_between(cluster, 3, 4), PcieLevel::sys);
}

TEST(LinkTree, the_order_of_ranks_in_the_tree_does_not_matter_to_a_ring) {
  const Cluster mixed =
      machine("[{socket: [{switch: [0, 5]}, {switch: [3, 6]}]}, {socket: [{switch: [1, 4]}, {switch: [2, 7]}]}]");
  EXPECT_NEAR(ring_gb_s(mixed, 8), ring_gb_s(machine(kTwoSockets), 8), 1e-9);
}

TEST(LinkTree, beyond_the_level_of_peer_access_bytes_pass_the_hosts_memory) {
  const Cluster intel = machine(kTwoSockets, ", p2p_level: pxb");
  EXPECT_TRUE(reach_each_other(intel, 0, 1));
  EXPECT_FALSE(reach_each_other(intel, 1, 2));
  EXPECT_NEAR(ring_gb_s(intel, 2), kDirect, 1e-9);
  EXPECT_NEAR(ring_gb_s(intel, 4), 60 / 4.0, 1e-9) << "two edges, each written and read";
  EXPECT_NEAR(ring_gb_s(intel, 8), 60 / 8.0, 1e-9) << "four edges";
  EXPECT_EQ(group_links(intel, place(intel, 4)).kind, CollectiveLimiter::host);
  const Cluster roomy = machine("[{socket: [0, 1, 2, 3, 4, 5, 6, 7]}]", ", p2p_level: pxb", "6000 GB/s");
  EXPECT_NEAR(ring_gb_s(roomy, 8), kHost, 1e-9) << "the slot";
}

TEST(LinkTree, groups_that_run_at_once_share_what_they_cross) {
  const Cluster cluster = machine(kTwoSockets);
  // Pairs a switch apart: both of a switch go up over one uplink.
  EXPECT_NEAR(ring_gb_s(cluster, 2, 2), kDirect, 1e-9);
  EXPECT_NEAR(ring_gb_s(cluster, 2, 2, 4), kDirect / 2, 1e-9);
  // Pairs over the sockets: four at once.
  EXPECT_NEAR(ring_gb_s(cluster, 2, 4), 10, 1e-9);
  EXPECT_NEAR(ring_gb_s(cluster, 2, 4, 4), 10 / 4.0, 1e-9);
}

TEST(LinkTree, an_exchange_loads_each_part_with_all_pairs) {
  const Cluster cluster = machine(kTwoSockets);
  const GroupLinks links = group_links(cluster, place(cluster, 8));
  // 16 of the 56 flows cross to each socket; a rank has seven.
  EXPECT_NEAR(links.exchange.value() * 1e-9, 7 * 10 / 16.0, 1e-9);
}

TEST(LinkTree, nvlinks_of_pairs_leave_the_tree_to_the_rest_of_the_ring) {
  const Cluster cluster = load_cluster("rtx3090-x4-nvlink");
  EXPECT_EQ(group_links(cluster, place(cluster, 2)).kind, CollectiveLimiter::links);
  const GroupLinks four = group_links(cluster, place(cluster, 4));
  EXPECT_EQ(four.kind, CollectiveLimiter::host);
  const Cluster without = load_cluster("rtx3090-x4-pcie");
  EXPECT_GT(four.bus, group_links(without, place(without, 4)).bus) << "two edges through the host in the place of four";
}

TEST(LinkTree, copies_with_the_host_share_the_uplink_of_a_switch) {
  const Cluster cluster = machine(kTwoSockets);
  const BytesPerSecond alone{25e9};
  EXPECT_EQ(host_copy_rate(cluster, alone, 1), alone);
  EXPECT_NEAR(host_copy_rate(cluster, alone, 8).value() * 1e-9, 15, 1e-9);
  EXPECT_EQ(host_copy_rate(machine("[{socket: [0, 1, 2, 3, 4, 5, 6, 7]}]"), alone, 8), alone);
}

TEST(LinkTree, shipped_machines_over_pcie_slow_down_with_their_sockets) {
  const Collective one{.kind = CollectiveKind::all_reduce, .ranks = 8, .bytes = 512 << 20};
  const Cluster l40s = load_cluster("l40s-x8-pcie");
  const CollectiveTime eight = collective_time(l40s, load_gpu(l40s.gpu_name), one, place(l40s, 8));
  EXPECT_GT(in_microseconds(eight.time), 300e3) << "649 ms were measured";
  EXPECT_LT(eight.low, microseconds(649471));
  EXPECT_GT(eight.high, microseconds(649471));
  for (const char* name : {"rtx4090-x2-pcie", "rtx4090-x4-pcie", "rtx4090-x8-pcie", "a100-pcie-x8"}) {
    const Cluster cluster = load_cluster(name);
    EXPECT_FALSE(collective_time(cluster, load_gpu(cluster.gpu_name), one, place(cluster, cluster.gpus)).validated);
    EXPECT_EQ(cluster.pcie.peer_to_peer, std::string(name) == "a100-pcie-x8") << name;
  }
}

constexpr const char* kMatrix =
    "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tPIX\tNODE\tSYS\tPXB\t0-15\t0\t\tN/A\n"
    "GPU1\tPIX\t X \tNODE\tSYS\tPXB\t0-15\t0\t\tN/A\n"
    "GPU2\tNODE\tNODE\t X \tSYS\tNODE\t0-15\t0\t\tN/A\n"
    "GPU3\tSYS\tSYS\tSYS\t X \tSYS\t16-31\t1\t\tN/A\n"
    "NIC0\tPXB\tPXB\tNODE\tSYS\t X \n"
    "\nLegend:\n\n  X    = Self\n";

std::string with_matrix(std::string matrix, const std::string& more = "gpu: nvidia-l40s\n") {
  std::string text = "source: mine\n" + more + "links:\n  topology: |\n";
  std::string line;
  for (const char c : matrix + "\n") {
    if (c != '\n') line += c;
    else text += "    " + line + "\n", line.clear();
  }
  return text;
}

TEST(Topology, is_read_as_nvidia_smi_prints_it) {
  const Cluster cluster = cluster_from_yaml(with_matrix(kMatrix), "mine.yaml");
  EXPECT_EQ(cluster.gpus, 4) << "as many as the matrix has";
  EXPECT_EQ(cluster.interconnect, Interconnect::pcie);
  EXPECT_EQ(level_between(cluster, 0, 1), PcieLevel::pix);
  EXPECT_EQ(level_between(cluster, 0, 2), PcieLevel::node);
  EXPECT_EQ(level_between(cluster, 2, 3), PcieLevel::sys);
}

// As the document has it: blanks before the heading, and the text two columns behind its key.
TEST(Topology, may_be_indented_as_a_terminal_shows_it) {
  const Cluster cluster = cluster_from_yaml(
      "gpu: nvidia-l40s\nsource: my server\nlinks:\n  topology: |2\n            GPU0    GPU1    CPU Affinity\n"
      "    GPU0     X      PHB     0-31\n    GPU1    PHB      X      0-31\n",
      "mine.yaml");
  EXPECT_EQ(cluster.gpus, 2);
  EXPECT_EQ(level_between(cluster, 0, 1), PcieLevel::phb);
}

TEST(Topology, nvlinks_become_a_mesh_or_switches) {
  const std::string pairs =
      "GPU0 GPU1 GPU2 GPU3\nGPU0 X NV12 SYS SYS\nGPU1 NV12 X SYS SYS\nGPU2 SYS SYS X NV12\nGPU3 SYS SYS NV12 X\n";
  const Cluster a100 = cluster_from_yaml(with_matrix(pairs, "gpu: nvidia-a100-pcie-80gb\n"), "mine.yaml");
  EXPECT_EQ(a100.interconnect, Interconnect::mesh);
  EXPECT_EQ(a100.links.matrix[0][1], 12);
  EXPECT_EQ(a100.links.tree[0].socket, a100.links.tree[1].socket);
  EXPECT_NE(a100.links.tree[0].socket, a100.links.tree[2].socket);
  EXPECT_EQ(group_links(a100, place(a100, 2)).kind, CollectiveLimiter::links);
  EXPECT_EQ(group_links(a100, place(a100, 4)).kind, CollectiveLimiter::pcie);
  const std::string all = "GPU0 GPU1 GPU2\nGPU0 X NV18 NV18\nGPU1 NV18 X NV18\nGPU2 NV18 NV18 X\n";
  EXPECT_EQ(cluster_from_yaml(with_matrix(all, "gpu: nvidia-h100-sxm5-80gb\n"), "mine.yaml").interconnect,
            Interconnect::nvswitch);
}

std::string mistake_of(const std::string& text) {
  try {
    (void)cluster_from_yaml(text, "mine.yaml");
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(Topology, mistakes_name_their_place_and_what_is_allowed) {
  EXPECT_THAT(mistake_of(with_matrix("GPU0 GPU1\nGPU0 X FAR\nGPU1 PIX X\n")),
              AllOf(HasSubstr("mine.yaml:4:"), HasSubstr("links.topology"), HasSubstr("line 2"), HasSubstr("FAR"),
                    HasSubstr("PHB")));
  EXPECT_THAT(mistake_of(with_matrix("GPU0 GPU1\nGPU0 X PIX\nGPU1 SYS X\n")), HasSubstr("the other way around"));
  EXPECT_THAT(mistake_of(with_matrix("GPU0 GPU1 GPU2\nGPU0 X PIX SYS\nGPU1 PIX X PIX\nGPU2 SYS PIX X\n")),
              HasSubstr("farther apart than each is from a third one"));
  EXPECT_THAT(mistake_of(with_matrix("nothing\n")), HasSubstr("nvidia-smi topo -m"));
  EXPECT_THAT(mistake_of("source: mine\ngpu: nvidia-l40s\nlinks: {topology: topo.txt}\n"),
              AllOf(HasSubstr("mine.yaml:3:"), HasSubstr("no file 'topo.txt'")));
  EXPECT_THAT(mistake_of(with_matrix(kMatrix, "gpu: nvidia-l40s\ngpus: 8\n")),
              HasSubstr("describes 4 GPUs; the node has 8"));
}

TEST(Topology, mistakes_of_a_tree_too) {
  const auto tree = [](const std::string& text) {
    return mistake_of("source: mine\ngpu: nvidia-l40s\ngpus: 2\nlinks: {tree: {value: " + text + "}}\n");
  };
  EXPECT_EQ(tree("[{socket: [{root: [{switch: [{switch: [0]}, 1]}]}]}]"), "none");
  EXPECT_THAT(tree("[0, 0]"), AllOf(HasSubstr("mine.yaml:4:"), HasSubstr("links.tree"), HasSubstr("twice")));
  EXPECT_THAT(tree("[0, 2]"), HasSubstr("GPU 1 is missing"));
  EXPECT_THAT(tree("[{board: [0, 1]}]"), AllOf(HasSubstr("'board'"), HasSubstr("socket, root and switch")));
  EXPECT_THAT(tree("[{switch: [{socket: [0, 1]}]}]"), HasSubstr("a socket inside"));
  EXPECT_THAT(tree("[{switch: [{switch: [{switch: [0, 1]}]}]}]"), HasSubstr("third switch"));
  EXPECT_THAT(tree("[{switch: 0}, 1]"), HasSubstr("expected a list"));
  EXPECT_THAT(tree("[]"), HasSubstr("no GPU"));
}

}  // namespace
}  // namespace ridgeline

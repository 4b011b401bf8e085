// Clusters from files, from mappings of a scenario, with overrides; mistakes with their places.
#include "sim/network/load_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/config_error.h"
#include "sim/config/parse_yaml.h"
#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

std::string mistake_in(std::string_view text) {
  try {
    (void)cluster_from_yaml(text, "mine.yaml");
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(LoadCluster, every_shipped_description_loads_with_a_source_for_each_number) {
  EXPECT_THAT(cluster_names(), IsSupersetOf({"dgx-1-v100",
                                             "v100-x4-nvlink",
                                             "dgx-a100",
                                             "hgx-a100-x4",
                                             "hgx-h100",
                                             "h200-x2",
                                             "h200-x4",
                                             "hgx-h200",
                                             "hgx-b200",
                                             "p4d",
                                             "p4de",
                                             "p5",
                                             "rtx3090-x2-nvlink",
                                             "rtx3090-x2-pcie",
                                             "rtx3090-x4-pcie",
                                             "t4-x4-pcie",
                                             "a100-pcie-x8",
                                             "l40s-x8-pcie",
                                             "rtx3090-x4-nvlink",
                                             "rtx4090-x2-pcie",
                                             "rtx4090-x4-pcie",
                                             "rtx4090-x8-pcie"}));
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name);
    EXPECT_EQ(cluster.name, name);
    EXPECT_FALSE(cluster.title.empty()) << name;
    EXPECT_EQ(load_gpu(cluster.gpu_name).architecture, cluster.architecture) << name;
    EXPECT_TRUE(describes_cluster(name));
    for (const SheetRow& row : load_cluster_sheet(name).values) EXPECT_FALSE(row.source.empty()) << name << row.key;
  }
}

TEST(LoadCluster, a_mapping_of_a_scenario_takes_the_rest_from_its_gpu) {
  const Cluster cluster = load_cluster(
      config::parse_yaml("{gpu: nvidia-a100-sxm4-80gb, nodes: 2, gpus: 8, interconnect: nvswitch, nvls: false, "
                         "nics: {count: 8, rate: 200 Gbit/s}}",
                         "scenario"));
  EXPECT_EQ(cluster.all_gpus(), 16);
  EXPECT_EQ(cluster.links.count, 12);
  EXPECT_DOUBLE_EQ(cluster.nics.rate.value(), 25e9);
  EXPECT_FALSE(cluster.nvls);
}

TEST(LoadCluster, boards_of_one_chip_differ_in_what_their_drivers_let_them_do) {
  const auto of = [](const std::string& gpu, const std::string& more) {
    return cluster_from_yaml("gpu: " + gpu + "\ngpus: 2\nsource: mine\n" + more, "mine.yaml");
  };
  EXPECT_TRUE(of("nvidia-rtx-a6000", "").pcie.peer_to_peer);
  EXPECT_FALSE(of("nvidia-rtx-3090", "").pcie.peer_to_peer);
  EXPECT_TRUE(of("nvidia-l40s", "").pcie.peer_to_peer);
  EXPECT_FALSE(of("nvidia-rtx-4090", "").pcie.peer_to_peer);
  EXPECT_FALSE(of("nvidia-l40s", "pcie: {peer_to_peer: false}\n").pcie.peer_to_peer) << "the cluster's own word wins";
  EXPECT_EQ(of("nvidia-l40s", "").pcie.rate, of("nvidia-rtx-4090", "").pcie.rate) << "the rest is the architecture's";
}

TEST(LoadCluster, a_cluster_is_one_node_unless_it_says_more) {
  EXPECT_EQ(load_cluster(config::parse_yaml("{gpu: nvidia-l40s, gpus: 4}", "scenario")).nodes, 1);
}

TEST(LoadCluster, a_name_and_a_path_and_a_mapping_that_extends_are_the_same) {
  const Cluster named = load_cluster("p5");
  Cluster extended = load_cluster(config::parse_yaml("{extends: p5, nodes: 4}", "scenario"));
  EXPECT_EQ(extended.nodes, 4);
  extended.nodes = 1;
  extended.name = named.name;
  EXPECT_EQ(extended, named);
  EXPECT_EQ(load_cluster(config::parse_yaml("p5", "scenario")), named);
}

TEST(LoadCluster, an_override_wins) {
  const Cluster cluster = load_cluster("dgx-a100", {{"nodes", "16", ""}, {"links.rate", "50 GB/s", ""}});
  EXPECT_EQ(cluster.all_gpus(), 128);
  EXPECT_DOUBLE_EQ(cluster.links.rate.value(), 50e9);
}

TEST(LoadCluster, mistakes_name_their_place_key_and_what_is_allowed) {
  EXPECT_THAT(mistake_in("source: mine\ngpu: nvidia-h200-sxm-141gb\nnodes: 1\ngpus: 0\n"),
              AllOf(HasSubstr("mine.yaml:4"), HasSubstr("gpus")));
  EXPECT_THAT(mistake_in("source: mine\ngpu: nvidia-h200-sxm-141gb\nnodez: 1\ngpus: 8\n"),
              AllOf(HasSubstr("mine.yaml:3"), HasSubstr("nodez"), HasSubstr("nodes")));
  EXPECT_THAT(mistake_in("source: mine\ngpu: nvidia-h201\nnodes: 1\ngpus: 8\n"),
              AllOf(HasSubstr("mine.yaml:2"), HasSubstr("nvidia-h20")));
  EXPECT_THAT(mistake_in("source: mine\ngpu: nvidia-h200-sxm-141gb\nnodes: 2\ngpus: 8\n"),
              AllOf(HasSubstr("mine.yaml:3"), HasSubstr("nics.count is 0")));
  EXPECT_THAT(mistake_in("source: mine\ngpu: nvidia-h200-sxm-141gb\nnodes: 2\n"),
              AllOf(HasSubstr("mine.yaml"), HasSubstr("gpus: missing")));
  EXPECT_THAT(mistake_in("gpu: nvidia-h200-sxm-141gb\nnodes: 1\ngpus: 8\n"), HasSubstr("source"));
  EXPECT_THAT(mistake_in("source: mine\ngpu: nvidia-l4\nnodes: 1\ngpus: 2\ninterconnect: nvswitch\n"),
              HasSubstr("links.count is 0"));
  EXPECT_THAT(mistake_in("source: mine\ngpu: nvidia-v100-sxm2-16gb\nnodes: 1\ngpus: 2\n"
                         "links: {matrix: {value: [[0, 1], [2, 0]]}}\n"),
              HasSubstr("links.matrix"));
  EXPECT_THAT(mistake_in("source: mine\ngpu: nvidia-rtx-3090\nnodes: 1\ngpus: 4\ninterconnect: mesh\n"),
              AllOf(HasSubstr("mine.yaml:5"), HasSubstr("links.matrix: not given"), HasSubstr("4 GPUs")));
  EXPECT_THAT(mistake_in("source: mine\ngpu: nvidia-v100-sxm2-16gb\nnodes: 1\ngpus: 2\ninterconnect: ring\n"),
              AllOf(HasSubstr("mine.yaml:5"), HasSubstr("bridge")));
}

TEST(LoadCluster, an_unknown_name_tells_the_nearest) {
  try {
    (void)load_cluster("hgx-h20O");
    FAIL();
  } catch (const config::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("hgx-h200"));
  }
}

TEST(LoadCluster, every_row_of_a_matrix_is_checked) {
  const std::string start = "source: mine\ngpu: nvidia-v100-sxm2-16gb\nnodes: 1\ngpus: 3\nlinks: {matrix: {value: ";
  const std::string whole[] = {"[0, 1, 1]", "[1, 0, 1]", "[1, 1, 0]"},
                    itself[] = {"[1, 1, 1]", "[1, 1, 1]", "[1, 1, 1]"}, part[] = {"[0, 1]", "[1, 0]", "[1, 1]"};
  const auto matrix = [&](std::size_t other, const std::string& row) {
    std::string text;
    for (std::size_t i = 0; i < 3; ++i) text += (i > 0 ? ", " : "[") + (i == other ? row : whole[i]);
    return start + text + "]}}\n";
  };
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(mistake_in(matrix(i, itself[i])), HasSubstr("GPU " + std::to_string(i) + " has links to itself"));
    EXPECT_THAT(mistake_in(matrix(i, part[i])), HasSubstr("row " + std::to_string(i) + " has 2 numbers, expected 3"));
  }
}

}  // namespace
}  // namespace ridgeline

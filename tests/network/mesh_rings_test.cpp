// Rings of the DGX-1's mesh, counted by hand: bus bandwidths of nccl-tests there are these times 22.5 GB/s.
#include "sim/network/mesh_rings.h"

#include <gtest/gtest.h>

#include "sim/network/load_cluster.h"

namespace ridgeline {
namespace {

TEST(MeshRings, of_a_dgx_1_by_number_of_gpus) {
  const LinkCounts links = load_cluster("dgx-1-v100").links.matrix;
  EXPECT_EQ(disjoint_rings(links_between(links, 2, 1)), 1);
  EXPECT_EQ(disjoint_rings(links_between(links, 3, 1)), 2);
  EXPECT_EQ(disjoint_rings(links_between(links, 4, 1)), 4);
  EXPECT_EQ(disjoint_rings(links_between(links, 5, 1)), 0);  // the fifth reaches the first alone
  EXPECT_EQ(disjoint_rings(links_between(links, 6, 1)), 2);
  EXPECT_EQ(disjoint_rings(links_between(links, 7, 1)), 4);
  EXPECT_EQ(disjoint_rings(links), 6);
}

TEST(MeshRings, every_other_gpu_has_other_links) {
  const LinkCounts links = load_cluster("dgx-1-v100").links.matrix;
  EXPECT_EQ(disjoint_rings(links_between(links, 2, 3)), 2);  // GPUs 0 and 3 share two links
  EXPECT_EQ(disjoint_rings(links_between(links, 2, 5)), 0);  // 0 and 5 none
}

TEST(MeshRings, four_gpus_with_four_links_between_each_two_have_what_a_switch_would_give) {
  EXPECT_EQ(disjoint_rings(load_cluster("hgx-a100-x4").links.matrix), 12);
}

TEST(MeshRings, one_gpu_has_none) { EXPECT_EQ(disjoint_rings(LinkCounts{{0}}), 0); }

}  // namespace
}  // namespace ridgeline

// Copies between devices: over as many links as join the two, else through the host.
#include "sim/network/copy_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "sim/hardware/load_gpu.h"
#include "sim/network/load_cluster.h"

namespace ridgeline {
namespace {

TEST(CopyTime, OverTwoLinksOfAMeshIsHalfOfThatOverOneAndLessThanWithoutAny) {
  const Cluster dgx = load_cluster("dgx-1-v100");
  const Gpu gpu = load_gpu("nvidia-v100-sxm2-16gb");
  const auto& links = dgx.links.matrix;
  const auto joined_by = [&](int count) {
    for (int to = 1; to < 8; ++to)
      if (links[0][static_cast<std::size_t>(to)] == count) return to;
    return -1;
  };
  ASSERT_GT(joined_by(0), 0);
  const auto rate = [&](int to) {  // beyond the start of a copy
    const auto time = [&](double bytes) { return copy_time(dgx, gpu, CopyRoute::peer, Bytes{bytes}, 0, to).value(); };
    return 1e9 / (time(3e9) - time(2e9));
  };
  EXPECT_NEAR(rate(joined_by(2)) / rate(joined_by(1)), 2.0, 1e-6);
  EXPECT_GT(rate(joined_by(1)), 1.2 * rate(joined_by(0)));
}

TEST(CopyTime, OverABridgeIsThatOfItsLinksWithinAPairAndThroughTheHostBetweenPairs) {
  Cluster bridged = load_cluster("rtx3090-x2-nvlink");
  bridged.gpus = 4;
  const Gpu gpu = load_gpu("nvidia-rtx-3090");
  const auto seconds = [&](const Cluster& cluster, int from, int to) {
    return copy_time(cluster, gpu, CopyRoute::peer, Bytes{1e9}, from, to).value();
  };
  Cluster without = bridged;
  without.interconnect = Interconnect::pcie;
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to) {
      if (from == to) continue;
      const bool pair = std::min(from, to) % 2 == 0 && std::abs(from - to) == 1;
      SCOPED_TRACE(::testing::Message() << from << " to " << to);
      EXPECT_EQ(seconds(bridged, from, to), seconds(bridged, to, from));
      if (pair) EXPECT_EQ(seconds(bridged, from, to), seconds(bridged, 0, 1));
      else EXPECT_EQ(seconds(bridged, from, to), seconds(without, from, to));
    }
  EXPECT_LT(seconds(bridged, 0, 1), 0.8 * seconds(bridged, 1, 2));
}

}  // namespace
}  // namespace ridgeline

// What is said of a kernel beside its time, for kernels of every law, from the launch alone: traffic, hits, waves,
// occupancy.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/analytic_engine.h"
#include "tests/support/random_kernel_cases.h"

namespace ridgeline {
namespace {

/// Kernels of random operations, with what the L2 holds of each access.
class KernelFigures : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Lowering lowering(gpu_, software_);
    for (const auto& known : ridgeline::testing::RandomKernelCases(31).of_every_op(12)) {
      try {
        for (const KernelLaunch& launch : lowering.lower(known.kernel.op).launches) launches_.push_back(launch);
      } catch (const std::invalid_argument&) {
        continue;  // this GPU has no kernel for it
      }
    }
    ASSERT_GT(launches_.size(), 300u);
  }
  [[nodiscard]] KernelTime timed(const KernelLaunch& launch, double held) const {
    const std::vector<double> shares(launch.reads.size() + launch.writes.size(), held);
    return engine_.time(launch, shares);
  }

  const Gpu gpu_ = load_gpu(GetParam());
  const Software software_{};
  const AnalyticEngine engine_{gpu_};
  std::vector<KernelLaunch> launches_;
};

bool is_fixed(const KernelLaunch& launch) { return std::holds_alternative<FixedWork>(launch.work); }
bool is_split_sum(const KernelLaunch& launch) {
  const auto* product = std::get_if<GemmWork>(&launch.work);
  return product != nullptr && product->reduces_splits;
}

TEST_P(KernelFigures, waves_are_blocks_over_those_resident_at_once) {
  int of_products = 0, of_attention = 0;
  for (const KernelLaunch& launch : launches_) {
    if (is_fixed(launch) || is_split_sum(launch)) continue;
    const KernelTime time = timed(launch, 0.0);
    EXPECT_GT(time.occupancy, 0.0) << launch.name;
    EXPECT_LE(time.occupancy, 1.0) << launch.name;
    int resident = 0;
    if (const auto* product = std::get_if<GemmWork>(&launch.work)) {
      if (product->gathering.role != Gathering::Role::none) continue;  // waves of tiles, which some blocks do many of
      resident = product->blocks_per_sm;
      ++of_products;
    } else if (const auto* attention = std::get_if<AttentionWork>(&launch.work)) {
      resident = attention->blocks_per_sm;
      ++of_attention;
    } else {
      continue;  // waves of the blocks that do work
    }
    resident = std::max(1, resident);
    EXPECT_NEAR(time.waves, launch.blocks() / (gpu_.sm.count * resident), 1e-9 * time.waves) << launch.name;
    EXPECT_NEAR(time.occupancy, std::min(1.0, resident * launch.threads_per_block / 32.0 / gpu_.sm.max_warps), 1e-9)
        << launch.name;
  }
  EXPECT_GT(of_products, 20);
  EXPECT_GT(of_attention, 5);
}

TEST_P(KernelFigures, the_l2_is_asked_for_all_and_hits_are_what_the_dram_is_spared) {
  for (const KernelLaunch& launch : launches_) {
    if (is_fixed(launch) || is_split_sum(launch)) continue;
    for (const double held : {0.0, 0.5}) {
      const KernelTime time = timed(launch, held);
      EXPECT_GE(time.l2_hit_rate, 0.0) << launch.name;
      EXPECT_LE(time.l2_hit_rate, 1.0) << launch.name;
      EXPECT_GE(time.dram_read_bytes, 0.0) << launch.name;
      EXPECT_LE(time.clocked.value(), time.time.value() * (1 + 1e-9)) << launch.name;
      // What is read at all is asked of the L2 once at least, and cold it comes from the DRAM once at least.
      if (std::holds_alternative<AttentionWork>(launch.work)) {
        EXPECT_NEAR(time.l2_bytes, launch.read_bytes() + launch.written_bytes(), 1e-6 * time.l2_bytes) << launch.name;
        EXPECT_GE(time.dram_read_bytes, (1 - held) * launch.read_bytes() * (1 - 1e-9)) << launch.name;
        EXPECT_NEAR(time.l2_hit_rate, held, 1e-9) << launch.name;
        EXPECT_NEAR(time.dram_write_bytes, (1 - held) * launch.written_bytes(), 1e-6 * launch.written_bytes())
            << launch.name;
      }
    }
  }
}

TEST_P(KernelFigures, more_that_is_held_is_never_more_of_the_drams) {
  for (const KernelLaunch& launch : launches_) {
    if (is_fixed(launch)) continue;
    const KernelTime cold = timed(launch, 0.0), half = timed(launch, 0.5), warm = timed(launch, 1.0);
    EXPECT_GE(cold.dram_read_bytes * (1 + 1e-9), half.dram_read_bytes) << launch.name;
    EXPECT_GE(half.dram_read_bytes * (1 + 1e-9), warm.dram_read_bytes) << launch.name;
    EXPECT_GE(cold.l2_hit_rate, 0.0);
    EXPECT_LE(cold.l2_hit_rate, warm.l2_hit_rate + 1e-9) << launch.name;
  }
}

TEST_P(KernelFigures, a_board_without_a_limit_holds_nothing_back) {
  Gpu free = gpu_;
  free.power.limit = Watts{0};
  const AnalyticEngine unlimited(free);
  for (const KernelLaunch& launch : launches_) {
    if (launch.choice != nullptr || launch.others != nullptr) continue;
    const KernelTime with = engine_.time(launch, {}), without = unlimited.time(launch, {});
    EXPECT_EQ(without.held.value(), 0.0) << launch.name;
    EXPECT_NEAR((with.time - with.held).value(), without.time.value(), 1e-9 * without.time.value()) << launch.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, KernelFigures, ::testing::Values("nvidia-h200-sxm-141gb", "nvidia-a100-sxm4-80gb"),
                         [](const auto& param) { return std::string(param.param).substr(7, 4); });

}  // namespace
}  // namespace ridgeline

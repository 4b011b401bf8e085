// What the phases of a simulated kernel's blocks move is what its traffic moves.
#include "sim/hierarchy/grid_plan.h"

#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

TEST(GridPlan, phases_of_all_blocks_move_the_bytes_of_the_traffic) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  GemmWork work;
  work.type = DType::bf16;
  work.m = work.n = 2048;
  work.k = 1024;
  work.tile_m = work.tile_n = 128;
  work.tile_k = 32;
  work.stages = work.first_stages = 3;
  const GemmTime law;
  KernelTraffic traffic;
  for (int step = 0; step < 4; ++step) {  // of unequal work
    TrafficStep one;
    one.work = 0.1 * (step + 1);
    one.dram_read = 4e6;
    one.l2_write = 2e6;
    traffic.steps.push_back(one);
  }
  const GridPlan plan = plan_of(work, law, KernelParts{.memory = 1e-5}, traffic, gpu);
  ASSERT_EQ(plan.cohorts.size(), 1u);
  ASSERT_EQ(plan.cohorts[0].size(), 4u);
  const auto blocks = static_cast<double>(std::min(plan.cohort_blocks, plan.blocks));
  double share = 0.0, read = 0.0, written = 0.0;
  for (const BlockPhase& phase : plan.cohorts[0]) {
    share += phase.work;
    read += blocks * static_cast<double>(phase.read);
    written += blocks * static_cast<double>(phase.write);
  }
  EXPECT_NEAR(share, 1.0, 1e-12);
  EXPECT_NEAR(read, 16e6, 1e-3 * 16e6);
  EXPECT_NEAR(written, 8e6, 1e-3 * 8e6);
}

}  // namespace
}  // namespace ridgeline

#include "sim/occupancy/occupancy.h"

#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

const SmSpec& hopper() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu.sm;
}

TEST(Occupancy, warps_limit_blocks_of_128_threads_with_few_registers) {
  const Occupancy o = occupancy_of(hopper(), 128, 32, 0);
  EXPECT_EQ(o.blocks, 16);
  EXPECT_EQ(o.limit, OccupancyLimit::warps);
  EXPECT_DOUBLE_EQ(o.share(hopper()), 1.0);
}

TEST(Occupancy, registers_are_handed_to_warps_in_units_of_256) {
  EXPECT_EQ(occupancy_of(hopper(), 128, 32, 0).blocks, 16);
  // 33 registers cost as much as 40: 1280 a warp, 12 warps in a scheduler's 16384.
  EXPECT_EQ(occupancy_of(hopper(), 128, 33, 0).blocks, 12);
  EXPECT_EQ(occupancy_of(hopper(), 128, 40, 0).blocks, 12);
  EXPECT_EQ(occupancy_of(hopper(), 128, 41, 0).blocks, 10);
  EXPECT_EQ(occupancy_of(hopper(), 128, 41, 0).limit, OccupancyLimit::registers);
}

TEST(Occupancy, a_scheduler_does_not_lend_its_registers) {
  // 96 registers: five warps a scheduler, so 20 an SM: two blocks of eight warps, not the 21 warps of a common file.
  EXPECT_EQ(occupancy_of(hopper(), 256, 96, 0).blocks, 2);
}

TEST(Occupancy, shared_memory_counts_with_what_the_driver_reserves) {
  const std::int64_t half = 113 * 1024;  // two blocks of 113 KiB + 1 KiB fill 228 KiB
  EXPECT_EQ(occupancy_of(hopper(), 128, 32, half).blocks, 2);
  EXPECT_EQ(occupancy_of(hopper(), 128, 32, half + 1).blocks, 1);
  EXPECT_EQ(occupancy_of(hopper(), 128, 32, half + 1).limit, OccupancyLimit::shared_memory);
}

TEST(Occupancy, tiny_blocks_run_out_of_block_slots) {
  EXPECT_EQ(occupancy_of(hopper(), 32, 16, 0).blocks, 32);
  EXPECT_EQ(occupancy_of(hopper(), 32, 16, 0).limit, OccupancyLimit::blocks);
  EXPECT_EQ(occupancy_of(hopper(), 1, 16, 0).warps_per_block, 1);
}

TEST(Occupancy, a_block_that_fits_nowhere_has_none_resident) {
  EXPECT_EQ(occupancy_of(hopper(), 1024, 128, 0).blocks, 0);
  EXPECT_EQ(occupancy_of(hopper(), 1024, 64, 0).blocks, 1);
}

TEST(Occupancy, an_sm_with_48_warps_and_16_slots_holds_fewer) {
  SmSpec small = hopper();
  small.max_warps = 48;
  small.max_blocks = 16;
  EXPECT_EQ(occupancy_of(small, 128, 32, 0).blocks, 12);
  EXPECT_EQ(occupancy_of(small, 64, 32, 0).blocks, 16);
}

TEST(Occupancy, what_a_chip_does_not_state_limits_nothing) {
  SmSpec none = hopper();
  none.shared_per_sm = Bytes{0};
  EXPECT_EQ(occupancy_of(none, 128, 32, 100 * 1024).blocks, 16) << "no capacity is known";
  SmSpec unreserved = hopper();
  unreserved.shared_reserved_per_block = Bytes{0};
  EXPECT_EQ(occupancy_of(unreserved, 128, 32, 0).blocks, 16) << "no shared memory is asked for";
  EXPECT_EQ(occupancy_of(hopper(), 128, 0, 0).blocks, 16) << "registers are not known";
  EXPECT_EQ(occupancy_of(hopper(), 0, 32, 0).warps_per_block, 1);
  SmSpec tiny = hopper();
  tiny.register_allocation_unit = 0;
  tiny.registers = 4 * 33 * 32;  // one warp of 33 registers in each file
  EXPECT_EQ(occupancy_of(tiny, 32, 33, 0).blocks, 4) << "a unit of nothing is one";
  EXPECT_EQ(occupancy_of(tiny, 32, 1, 0).blocks, 32);
  EXPECT_EQ(occupancy_of(hopper(), 33, 32, 0).warps_per_block, 2);
  EXPECT_EQ(occupancy_of(hopper(), 64, 32, 0).warps_per_block, 2);
}

}  // namespace
}  // namespace ridgeline

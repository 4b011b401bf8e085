// Reads by strides, stores of single elements and the caches, by rules that need no measurement.
#include "sim/kernels/memory_bound/strided_access.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/memory_bound/partial_stores.h"

namespace ridgeline {
namespace {

const Gpu& gpu() {
  static const Gpu chip = load_gpu("nvidia-h200-sxm-141gb");
  return chip;
}
StridedAccess of(std::vector<std::int64_t> dimensions, DType type, std::int64_t per_block = 512) {
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < dimensions.size(); i += 2) elements *= dimensions[i];
  const SizeList list{std::make_shared<const std::vector<std::int64_t>>(std::move(dimensions))};
  return strided_access(list, type, elements, per_block, gpu());
}

TEST(StridedAccess, a_contiguous_operand_is_read_once_in_whole_lines) {
  const StridedAccess access = of({1 << 20, 1}, DType::bf16);
  EXPECT_DOUBLE_EQ(access.bytes, 2.0 * (1 << 20));
  EXPECT_DOUBLE_EQ(access.requested, access.bytes);
  EXPECT_DOUBLE_EQ(access.lines, (1 << 20) / 32.0);  // a warp's 64 bytes lie in one line
}

TEST(StridedAccess, a_repeated_operand_is_read_from_the_dram_once) {
  // Keys of eight heads that share one: [tokens x width, 8 times, batch].
  const StridedAccess repeated = of({64 * 1024, 1, 8, 0, 12, 64 * 1024}, DType::bf16);
  EXPECT_DOUBLE_EQ(repeated.bytes, 12.0 * 64 * 1024 * 2);
  EXPECT_DOUBLE_EQ(repeated.requested, 8.0 * repeated.bytes);
}

TEST(StridedAccess, sectors_are_counted_once_where_a_cache_holds_them_until_their_neighbours_come) {
  // Columns of 24: a block of 512 reads whole lines, though each access of a warp touches 32 of them.
  const StridedAccess narrow = of({32, 24, 24, 1, 4096, 768}, DType::bf16);
  EXPECT_NEAR(narrow.requested / narrow.bytes, 1.0, 0.7);
  // Columns of 9,000: a line for each element.
  const StridedAccess wide = of({9000, 9000, 9000, 1}, DType::bf16);
  EXPECT_GT(wide.requested, 20.0 * 2.0 * 9000 * 9000);
  // The L2 holds what 9,000 rows have open: from the DRAM each byte comes once.
  EXPECT_NEAR(wide.bytes, 2.0 * 9000 * 9000, 1.0);
}

TEST(StridedAccess, gaps_narrower_than_a_sector_are_read_too) {
  EXPECT_NEAR(of({1 << 20, 4}, DType::bf16).bytes, 4 * 2.0 * (1 << 20), 64.0);
  // Wider ones are not: a sector an element.
  EXPECT_NEAR(of({1 << 20, 64}, DType::bf16).bytes, 32.0 * (1 << 20), 1.0);
}

TEST(StridedAccess, each_dimension_costs_a_division) {
  EXPECT_DOUBLE_EQ(of({8, 1, 9, 16, 10, 160}, DType::fp32).arithmetic, kInstructionsADimension);
  EXPECT_LT(of({720, 2}, DType::fp32).arithmetic, 0.0);
}

TEST(StridedAccess, dimensions_that_are_none_are_refused) {
  for (const std::vector<std::int64_t>& none :
       {std::vector<std::int64_t>{0, 1}, {4}, {4, 1, 3}, {8, std::int64_t{1} << 62}}) {
    const SizeList list{std::make_shared<const std::vector<std::int64_t>>(none)};
    EXPECT_THROW(strided_access(list, DType::fp32, 8, 256, gpu()), std::invalid_argument);
  }
}

TEST(PartialStores, stores_that_leave_their_sector_cost_most) {
  const auto requested = [](std::int64_t run, std::int64_t apart) {
    KernelLaunch launch;
    const std::int64_t stores = 1 << 16;
    launch.writes = {{0, 4.0 * stores}};
    store_partly({run, apart, stores, 4}, DType::fp32, 1.0, gpu().l2, launch);
    return launch.writes.front().requested / stores;
  };
  EXPECT_NEAR(requested(1, 16), kStoredSectorBytes + kLeftSectorBytes, 1e-9);
  EXPECT_LT(requested(1, 4), requested(1, 8));
  EXPECT_LT(requested(1024, 2048), requested(1, 2));
}

TEST(PartialStores, sectors_that_the_l2_cannot_hold_are_read_again) {
  const auto moved = [](std::int64_t stores) {
    KernelLaunch launch;
    launch.writes = {{0, 16 * 4.0 * static_cast<double>(stores)}};
    store_partly({1, 16, stores, 4}, DType::fp32, 16.0, gpu().l2, launch);
    return launch.reads.empty() ? 0.0 : launch.reads.front().bytes;
  };
  EXPECT_EQ(moved(1 << 14), 0.0);
  EXPECT_GT(moved(1 << 22), 16 * 4.0 * (1 << 22));
}

}  // namespace
}  // namespace ridgeline

// What a reduction asks of the allocator while it runs, worked out by hand after PyTorch's Reduce.cuh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;

// Sums down 1024 columns: blocks of 32 x 4 threads, four columns a thread, so 8 blocks side by side. 132 SMs hold 2112
// of them; 64 share a column's 4096 rows, since a thread adds up no fewer than 16.
TEST(Reduction, SumsDownColumnsKeepAPartOfEveryThreadAndACounterOfEveryColumnOfBlocks) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const LoweredOp lowered = lower(Reduction{ReductionKind::sum_rows, DType::fp32, 4096, 1024}, gpu, {});
  ASSERT_EQ(lowered.launches.size(), 2u);  // the counters are cleared first
  EXPECT_THAT(lowered.launches[1].grid, ElementsAre(8, 64, 1));
  EXPECT_THAT(lowered.temporaries, ElementsAre(std::int64_t{4} * 1024 * 64 * 32 * 4, 8 * 4));
}

// One sum of all: a part of every block is enough.
TEST(Reduction, OneSumKeepsAPartOfEveryBlock) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const LoweredOp lowered = lower(Reduction{ReductionKind::sum_all, DType::fp32, 1, 1 << 24}, gpu, {});
  ASSERT_EQ(lowered.launches.size(), 2u);
  EXPECT_THAT(lowered.temporaries, ElementsAre(4 * lowered.launches[1].grid[1], 4));
}

TEST(Reduction, AFewRowsNeedNoMemory) {
  const LoweredOp lowered =
      lower(Reduction{ReductionKind::sum_rows, DType::fp32, 64, 1024}, load_gpu("nvidia-h200-sxm-141gb"), {});
  EXPECT_EQ(lowered.launches.size(), 1u);
  EXPECT_TRUE(lowered.temporaries.empty());
}

// A thread a column goes down the rows one by one; along rows a block's threads take them in tiles.
TEST(Reduction, AScanDownColumnsTakesAStepForEveryRow) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto steps = [&](ReductionKind kind) {
    const LoweredOp lowered = lower(Reduction{kind, DType::fp32, 700, 64}, gpu, {});
    return std::get<MemoryBoundWork>(lowered.launches.back().work).iterations;
  };
  EXPECT_EQ(steps(ReductionKind::scan_rows), 700.0);
  EXPECT_LT(steps(ReductionKind::scan_cols), 10.0);
}

}  // namespace
}  // namespace ridgeline

// Rows of tables added up by bags: what each pass reads and writes.
#include <gtest/gtest.h>

#include <stdexcept>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kMany = 1 << 20;

Embedding bags_of(std::int64_t tokens, std::int64_t rows, std::int64_t bags, bool backward = false) {
  Embedding op;
  op.backward = backward;
  op.tokens = tokens;
  op.vocabulary = rows;
  op.hidden = 64;
  op.bags = bags;
  return op;
}
KernelLaunch launch_of(const Embedding& op) {
  const LoweredOp lowered = lower(op, load_gpu("nvidia-a100-sxm4-80gb"), Software{});
  EXPECT_EQ(lowered.launches.size(), op.backward ? 2u : 1u);  // long runs of equal indices have a kernel of their own
  return lowered.launches.back();
}

TEST(EmbeddingBags, ForwardReadsARowAnIndexAndWritesARowABag) {
  const KernelLaunch launch = launch_of(bags_of(kMany, 1000 * kMany, kMany / 8));
  EXPECT_NEAR(launch.reads[0].bytes, kMany * 256.0, 0.01 * kMany * 256.0);  // none is asked for again
  EXPECT_DOUBLE_EQ(launch.reads[1].bytes, 8.0 * (kMany + kMany / 8));
  EXPECT_DOUBLE_EQ(launch.writes[0].bytes, 256.0 * kMany / 8);
  EXPECT_EQ(launch.grid[0], kMany / 8 / 16);  // a warp a bag
}

TEST(EmbeddingBags, ATableThatFitsTheL2IsFetchedOnce) {
  const KernelLaunch launch = launch_of(bags_of(kMany, 1000, kMany / 8));
  EXPECT_NEAR(launch.reads[0].bytes, 1000 * 256.0, 100.0);
  EXPECT_DOUBLE_EQ(launch.reads[0].requested, kMany * 256.0);
}

TEST(EmbeddingBags, BackwardReadsAGradientAnIndexAndUpdatesEachRowOnce) {
  const KernelLaunch launch = launch_of(bags_of(kMany, 1000, kMany, true));
  EXPECT_NEAR(launch.reads[0].bytes, kMany * 256.0, 0.2 * kMany * 256.0);
  EXPECT_NEAR(launch.reads[2].bytes, 1000 * 256.0, 1.0);
  EXPECT_EQ(launch.writes.front().bytes, launch.reads[2].bytes);
}

TEST(EmbeddingBags, BagsAreNotAddedToATableAtOnce) {
  Embedding op = bags_of(8, 8, 8, true);
  op.accumulates = true;
  EXPECT_THROW(lower(op, load_gpu("nvidia-a100-sxm4-80gb"), Software{}), std::invalid_argument);
}

}  // namespace
}  // namespace ridgeline

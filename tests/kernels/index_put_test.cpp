// Rows added to a table by index_put: what decides is the row that most indices name.
#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {
namespace {

double microseconds(std::int64_t tokens, std::int64_t rows, std::int64_t hidden, DType type = DType::bf16) {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  static const auto engine = make_timing_engine("analytic", gpu);
  const LoweredOp lowered = lower(Embedding{true, type, tokens, rows, hidden, true}, gpu, Software{});
  EXPECT_EQ(lowered.launches.size(), 1u);
  return 1e6 * engine->time(lowered.launches.front(), {}).time.value();
}

TEST(IndexPut, TakesAsLongAsTheRowWithMostTerms) {
  for (const std::int64_t hidden : {1, 16, 768}) {
    EXPECT_NEAR(microseconds(16384, 4, hidden) / microseconds(8192, 4, hidden), 2.0, 0.15) << hidden;
    EXPECT_GT(microseconds(8192, 8, hidden), 5.0 * microseconds(8192, 4096, hidden)) << hidden;
  }
}

TEST(IndexPut, OfDistinctRowsIsBoundByTheirBytes) {
  // 32,768 rows of 5,760 elements into 50,000: 426 us on the H200, in 16 bits.
  EXPECT_NEAR(microseconds(32768, 50000, 5760), 426.0, 0.3 * 426.0);
}

}  // namespace
}  // namespace ridgeline

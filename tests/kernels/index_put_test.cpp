// Rows added to a table by index_put: what decides is the row that most indices name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

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

// The law's longest run against indices that are drawn: within 15 % and one term; it is too long for a handful of rows.
TEST(IndexPut, TheLongestRunIsThatOfIndicesDrawnAtRandom) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  std::mt19937_64 random(11);
  for (int i = 0; i < 60; ++i) {
    const auto tokens = static_cast<std::int64_t>(std::exp2(3.0 + static_cast<double>(random() % 1200) / 100.0)),
               rows = static_cast<std::int64_t>(std::exp2(1.0 + static_cast<double>(random() % 1400) / 100.0));
    constexpr int kDraws = 20;
    double drawn = 0.0;
    for (int draw = 0; draw < kDraws; ++draw) {
      std::vector<int> terms(static_cast<std::size_t>(rows));
      for (std::int64_t t = 0; t < tokens; ++t) ++terms[random() % static_cast<std::uint64_t>(rows)];
      drawn += *std::max_element(terms.begin(), terms.end()) / static_cast<double>(kDraws);
    }
    const LoweredOp lowered = lower(Embedding{true, DType::bf16, tokens, rows, 64, true}, gpu, Software{});
    const double said = std::get<MemoryBoundWork>(lowered.launches.front().work).iterations;
    EXPECT_NEAR(said, drawn, 1.0 + 0.15 * drawn) << tokens << " of " << rows;
  }
}

TEST(IndexPut, MoreTermsTakeLonger) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 200; ++i) {
    const auto tokens = static_cast<std::int64_t>(1 + random() % 40000),
               rows = static_cast<std::int64_t>(1 + random() % 9000),
               hidden = static_cast<std::int64_t>(1 + random() % 3000);
    EXPECT_LE(microseconds(tokens, rows, hidden), 1.02 * microseconds(2 * tokens, rows, hidden))
        << tokens << " of " << rows << " x " << hidden;
  }
}

TEST(IndexPut, IsOfTheBackwardPassAlone) {
  const Gpu gpu = load_gpu("nvidia-t4");
  EXPECT_THROW(lower(Embedding{false, DType::fp32, 8, 8, 8, true}, gpu, Software{}), std::invalid_argument);
}

TEST(IndexPut, OfDistinctRowsIsBoundByTheirBytes) {
  // 32,768 rows of 5,760 elements into 50,000: 426 us on the H200, in 16 bits.
  EXPECT_NEAR(microseconds(32768, 50000, 5760), 426.0, 0.3 * 426.0);
}

}  // namespace
}  // namespace ridgeline

// Published steps of torchtitan's Llamas under fully_shard on 8 to 256 GPUs, those on H100s with compiled blocks, some
// split over tensor parallel ranks: blocks checkpointed by operation, every second one, whole, or not. Nothing was
// taken from them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "sim/answer/step_run.h"
#include "sim/study/validation/published_training.h"

namespace ridgeline {
namespace {

constexpr double kTitanMedian = 0.10, kTitanWorst = 0.12;
constexpr double kTitanReserved = 0.02;

TEST(TorchtitanSteps, published_take_the_time_and_memory_they_took) {
  const MeasurementIndex index(RIDGELINE_SOURCE_DIR "/measurements");
  std::vector<double> sides[2], all;
  for (PublishedTraining& row : load_published_training(index.file("public/torchtitan_steps.jsonl.gz"))) {
    const bool held_out = row.held_out;
    const Prediction p = predict(row.scenario, "analytic");
    const double error = ratio(p.step.time, row.step_time) - 1.0;
    std::printf("%s: time %+.1f %%", row.id.c_str(), 100.0 * error);
    if (row.peak_reserved) {
      const double reserved =
          static_cast<double>(p.memory.peak_reserved) / static_cast<double>(*row.peak_reserved) - 1.0;
      std::printf(", reserved %+.1f %%", 100.0 * reserved);
      EXPECT_LE(std::abs(reserved), kTitanReserved) << row.id;
    }
    std::printf("\n");
    all.push_back(std::abs(error));
    sides[held_out ? 1 : 0].push_back(all.back());
  }
  ASSERT_EQ(all.size(), 10u);
  const auto median = [](std::vector<double>& errors) {
    std::sort(errors.begin(), errors.end());
    return errors.at(errors.size() / 2);
  };
  for (std::vector<double>& errors : sides) {
    const double middle = median(errors);
    std::printf("%zu steps, median %.1f %%, worst %.1f %%\n", errors.size(), 100.0 * middle, 100.0 * errors.back());
  }
  EXPECT_LE(median(all), kTitanMedian);
  EXPECT_LE(all.back(), kTitanWorst);
}

}  // namespace
}  // namespace ridgeline

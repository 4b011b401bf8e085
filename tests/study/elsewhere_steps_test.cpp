// Published steps on boards, hosts and software that their sources state in part
// (measurements/public/training_elsewhere.jsonl.gz). Nothing was taken from them but the errors of runs on unknown
// machines.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/study/validation/range_coverage.h"
#include "tests/study/validated.h"

namespace ridgeline {
namespace {

// Asked for: a median of 7 %, 88 % in range (measurements/DEVIATIONS.md).
constexpr double kMedian = 0.13, kWorst = 0.26;

TEST(ElsewhereSteps, TakeAboutTheTimeTheyTook) {
  std::vector<double> errors;
  int inside = 0;
  for (const ValidatedStep& step : validated_steps()) {
    if (!step.measured.source.ends_with("elsewhere") || !step.measured.step_time) continue;
    errors.push_back(std::abs(ratio(step.predicted.step.time, *step.measured.step_time) - 1.0));
    inside += inside_range(step) ? 1 : 0;
    EXPECT_LE(errors.back(), kWorst) << step.measured.name;
  }
  ASSERT_EQ(errors.size(), 16U);
  std::sort(errors.begin(), errors.end());
  const double median = 0.5 * (errors[7] + errors[8]);
  fmt::print("16 steps, median {:.1f} %, worst {:.1f} %, {} in range\n", 100.0 * median, 100.0 * errors.back(), inside);
  EXPECT_LE(median, kMedian);
  EXPECT_GT(median, 0.07) << "they meet their bar: take them out of measurements/DEVIATIONS.md";
  EXPECT_GE(inside, 12);
}

}  // namespace
}  // namespace ridgeline

// The range of a step on a machine that nobody here measured.
#include "sim/answer/unknown_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "sim/answer/ranges/busy_range.h"

namespace ridgeline {
namespace {

StepPrediction step_of(double low, double time, double high) {
  StepPrediction step;
  step.low = Seconds{low}, step.time = Seconds{time}, step.high = Seconds{high};
  return step;
}

// 3-4-5: half-widths of 0.3 and 0.4 in the logarithm give 0.5.
TEST(UnknownRun, HalfWidthsAddUpByTheirSquares) {
  StepPrediction step = step_of(2.0 * std::exp(-0.3), 2.0, 2.0 * std::exp(0.03));
  widen(step, {std::exp(-0.4), std::exp(0.04), 5});
  EXPECT_NEAR(step.low.value(), 2.0 * std::exp(-0.5), 1e-12);
  EXPECT_NEAR(step.high.value(), 2.0 * std::exp(0.05), 1e-12);
  EXPECT_EQ(step.time.value(), 2.0);
}

TEST(UnknownRun, NoErrorsWidenNothing) {
  StepPrediction step = step_of(0.8, 1.0, 1.3);
  widen(step, {});
  EXPECT_NEAR(step.low.value(), 0.8, 1e-12);
  EXPECT_NEAR(step.high.value(), 1.3, 1e-12);
  StepPrediction nothing = step_of(0.0, 0.0, 0.0);
  widen(nothing, {0.5, 2.0, 9});
  EXPECT_EQ(nothing.high.value(), 0.0);
}

TEST(UnknownRun, WidensBesideAnUnknownHostAndNoRecordingAlone) {
  Scenario scenario;
  scenario.host.known = true;
  StepPrediction known = step_of(0.9, 1.0, 1.1);
  widen_for_unknown_run(known, scenario);
  EXPECT_EQ(known.low.value(), 0.9);
  EXPECT_EQ(known.high.value(), 1.1);
  scenario.host.known = false;
  StepPrediction unknown = step_of(0.9, 1.0, 1.1), expected = unknown;
  widen_for_unknown_run(unknown, scenario);
  widen(expected, residual_ranges().unknown_runs());
  EXPECT_EQ(unknown.low, expected.low);
  EXPECT_EQ(unknown.high, expected.high);
  scenario.recorded = std::make_shared<const RecordedWorkload>();
  StepPrediction recorded = step_of(0.9, 1.0, 1.1);
  widen_for_unknown_run(recorded, scenario);
  EXPECT_EQ(recorded.high.value(), 1.1);
}

}  // namespace
}  // namespace ridgeline

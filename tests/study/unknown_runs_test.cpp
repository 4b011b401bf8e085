// Published steps on machines that nobody here measured, against ranges that know nothing of their publisher.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "sim/answer/ranges/busy_range.h"
#include "sim/answer/unknown_run.h"
#include "sim/study/validation/residual_table.h"
#include "tests/study/validated.h"

namespace ridgeline {
namespace {

/// The end of a range of kernels and hosts alone, as a factor on the time.
double without_runs(double factor, double runs) {
  const double all = std::log(factor), of_runs = std::log(runs);
  return std::exp(std::sqrt(std::max(0.0, all * all - of_runs * of_runs)));
}

TEST(UnknownRuns, NineInTenOfAPublisherLieInRangesMadeOfTheOthers) {
  std::vector<ValidatedStep> steps = validated_steps();
  steps.insert(steps.end(), validated_published_training().begin(), validated_published_training().end());
  const ResidualRanges::UnknownRuns& shipped = residual_ranges().unknown_runs();
  std::map<std::string, std::vector<double>> inside;
  for (const ValidatedStep& step : steps) {
    if (!of_unknown_machine(step)) continue;
    const RunErrors others = errors_of_unknown_runs(steps, step.measured.publisher);
    StepPrediction range = step.predicted.step;
    range.high = without_runs(ratio(range.high, range.time), shipped.high) * range.time;
    range.low = range.time / without_runs(ratio(range.low, range.time), shipped.low);
    widen(range, {others.low, others.high, static_cast<int>(others.publishers)});
    const Seconds measured = *step.measured.step_time;
    inside[step.measured.publisher].push_back(range.low <= measured && measured <= range.high ? 1.0 : 0.0);
  }
  ASSERT_GE(inside.size(), 15U);
  double sum = 0;
  for (const auto& [publisher, rows] : inside) {
    const double share = std::accumulate(rows.begin(), rows.end(), 0.0) / static_cast<double>(rows.size());
    fmt::print("{:60} {:4} steps, {:.0f} % inside\n", publisher, rows.size(), 100.0 * share);
    sum += share;
  }
  const double mean = sum / static_cast<double>(inside.size());
  EXPECT_GE(mean, 0.88);
  EXPECT_LE(mean, 0.955);
}

}  // namespace
}  // namespace ridgeline

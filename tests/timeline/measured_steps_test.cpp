// Step time, host time and GPU busy time against every eager transformer step measured on an H200.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sim/timeline/step_times.h"
#include "sim/timeline/timeline.h"
#include "tests/support/measured_steps.h"

namespace ridgeline {
namespace {

using testing_support::measured_cases;
using testing_support::MeasuredCase;
using testing_support::quantile;

struct Row {
  const MeasuredCase* measured = nullptr;
  Timeline timeline;
  [[nodiscard]] double measure(const char* key) const { return measured->row[key].get<double>(); }
  [[nodiscard]] double step_error() const { return in_milliseconds(timeline.step) / measure("step_ms_median") - 1; }
  [[nodiscard]] double host_error() const { return in_milliseconds(timeline.host_issue) / measure("host_ms") - 1; }
  [[nodiscard]] double busy() const { return measured->row["profiled"]["gpu_busy_ms"].get<double>(); }
  [[nodiscard]] double busy_error() const { return in_milliseconds(timeline.gpu_busy) / busy() - 1; }
  [[nodiscard]] double launches() const { return measured->row["profiled"]["kernels"].get<double>(); }
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> result;
    for (const MeasuredCase& c : measured_cases()) {
      const auto engine = make_timing_engine("analytic", c.scenario.gpu);
      const auto times = time_kernels(c.program, *engine, c.scenario.gpu);
      result.push_back({&c, run_timeline(c.program, times, c.scenario.gpu, c.scenario.host, {})});
    }
    return result;
  }();
  return all;
}

std::vector<double> errors(double (Row::*error)() const) {
  std::vector<double> result;
  for (const Row& row : rows()) result.push_back(std::abs((row.*error)()));
  return result;
}

TEST(MeasuredSteps, are_listed_with_their_errors) {
  ASSERT_GE(rows().size(), 52u);
  fmt::print("{:42} {:>17} {:>6} {:>17} {:>6} {:>17} {:>6} {:>11} {:>5} {:>6}\n", "", "step ms", "%", "host ms", "%",
             "busy ms", "%", "launches", "slow", "W");
  for (const Row& row : rows()) {
    fmt::print(
        "{:42} {:8.2f} {:8.2f} {:+6.1f} {:8.2f} {:8.2f} {:+6.1f} {:8.2f} {:8.2f} {:+6.1f} {:5} {:5.0f} {:5.3f} "
        "{:6.0f}\n",
        row.measured->name, in_milliseconds(row.timeline.step), row.measure("step_ms_median"), 100 * row.step_error(),
        in_milliseconds(row.timeline.host_issue), row.measure("host_ms"), 100 * row.host_error(),
        in_milliseconds(row.timeline.gpu_busy), row.busy(), 100 * row.busy_error(), row.timeline.kernel_count(),
        row.launches(), row.timeline.clock.value() * 1e-6, row.timeline.power.value());
  }
}

// The bounds are today's errors with a little room, so that a change for the worse is seen.
TEST(MeasuredSteps, step_times_are_within_4_percent_in_the_median_and_14_in_nine_of_ten) {
  EXPECT_LE(quantile(errors(&Row::step_error), 0.5), 0.04);
  EXPECT_LE(quantile(errors(&Row::step_error), 0.9), 0.14);
}

TEST(MeasuredSteps, the_time_to_issue_a_step_is_within_4_percent_in_the_median) {
  EXPECT_LE(quantile(errors(&Row::host_error), 0.5), 0.04);
}

TEST(MeasuredSteps, busy_time_is_within_5_percent_in_the_median) {
  EXPECT_LE(quantile(errors(&Row::busy_error), 0.5), 0.05);
}

// With the measured busy time in place of the predicted one, what is left is the timeline's own error.
TEST(MeasuredSteps, the_timeline_alone_is_within_1_percent_of_gpu_bound_steps_in_the_median) {
  std::vector<double> alone;
  for (const Row& row : rows()) {
    if (row.timeline.host_bound) continue;
    const double gaps = in_milliseconds(row.timeline.step - row.timeline.gpu_busy) * row.launches() /
                        static_cast<double>(row.timeline.kernel_count());
    alone.push_back(std::abs((row.busy() + gaps) / row.measure("step_ms_median") - 1));
  }
  ASSERT_GE(alone.size(), 25u);
  EXPECT_LE(quantile(alone, 0.5), 0.01);
}

}  // namespace
}  // namespace ridgeline

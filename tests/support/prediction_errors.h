// Predictions of measured cases and a line of error statistics, for tests that hold the model to measurements.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/kernels/lowering.h"
#include "sim/timing/kernel_time.h"
#include "sim/timing/l2_residency.h"
#include "sim/workload/op_operands.h"

namespace ridgeline::testing {

struct PredictedOp {
  Seconds time;
  std::size_t launches = 0;
};

/// The op as one repetition of a steady state over `input_sets` sets of inputs (0: cold).
inline PredictedOp predict_op(const Op& op, int input_sets, const Gpu& gpu, const TimingEngine& engine) {
  const LoweredOp lowered = lower(op, gpu, Software{});
  const auto residency =
      repeated_residency(lowered.launches, rotating_operands(op), input_sets, gpu.l2, partly_used_bytes(op));
  PredictedOp result;
  result.launches = lowered.launches.size();
  for (std::size_t i = 0; i < lowered.launches.size(); ++i)
    result.time += engine.time(lowered.launches[i], residency.empty() ? Residency{} : Residency(residency[i])).time;
  return result;
}

/// Relative errors of a group of cases.
class PredictionErrors {
 public:
  void add(double predicted, double measured) { ratios_.push_back(predicted / measured); }
  [[nodiscard]] std::size_t count() const { return ratios_.size(); }
  [[nodiscard]] double median() const { return quantile(absolute(), 0.5); }
  [[nodiscard]] double tail() const { return quantile(absolute(), 0.9); }
  [[nodiscard]] double worst() const { return quantile(absolute(), 1.0); }
  [[nodiscard]] double bias() const { return quantile(ratios_, 0.5) - 1.0; }
  [[nodiscard]] double mean() const {
    double sum = 0.0;
    for (const double e : absolute()) sum += e;
    return sum / static_cast<double>(ratios_.size());
  }
  /// Prints the group's line and fails above the tolerances.
  void expect_within(const std::string& name, double median_tolerance, double mean_tolerance) const {
    ASSERT_GT(count(), 0u) << name;
    fmt::print("{:<44} n {:4}  median {:4.1f} %  mean {:4.1f} %  P90 {:4.1f} %  bias {:+5.1f} %\n", name, count(),
               100 * median(), 100 * mean(), 100 * tail(), 100 * bias());
    EXPECT_LE(median(), median_tolerance) << name;
    EXPECT_LE(mean(), mean_tolerance) << name;
  }

 private:
  [[nodiscard]] std::vector<double> absolute() const {
    std::vector<double> result;
    for (const double r : ratios_) result.push_back(std::abs(r - 1.0));
    return result;
  }
  static double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0.0
                          : values[std::min(values.size() - 1,
                                            static_cast<std::size_t>(share * static_cast<double>(values.size())))];
  }
  std::vector<double> ratios_;
};

}  // namespace ridgeline::testing

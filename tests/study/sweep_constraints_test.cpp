// Which points of a sweep its constraints allow.
#include <gtest/gtest.h>

#include "sim/study/sweep/sweep_point.h"

namespace ridgeline {
namespace {

SweepPoint point(double watts, double samples_per_s) {
  SweepPoint point;
  point.fits = true;
  point.metrics[static_cast<std::size_t>(Metric::power)] = watts;
  point.metrics[static_cast<std::size_t>(Metric::samples_per_s)] = samples_per_s;
  return point;
}

TEST(SweepConstraints, BelowAllowsNoMoreAndAboveNoLess) {
  Sweep sweep;
  sweep.constraints = {{Metric::power, 200.0, {}}, {Metric::samples_per_s, {}, 100.0}};
  EXPECT_TRUE(is_allowed(point(199.0, 101.0), sweep));
  EXPECT_TRUE(is_allowed(point(200.0, 100.0), sweep));
  EXPECT_FALSE(is_allowed(point(201.0, 101.0), sweep));
  EXPECT_FALSE(is_allowed(point(199.0, 99.0), sweep));
  sweep.constraints = {{Metric::power, 200.0, 100.0}};
  EXPECT_TRUE(is_allowed(point(150.0, 0.0), sweep));
  EXPECT_FALSE(is_allowed(point(50.0, 0.0), sweep));
  EXPECT_FALSE(is_allowed(point(250.0, 0.0), sweep));
}

TEST(SweepConstraints, WhatDoesNotFitOrRunIsNotAllowed) {
  const Sweep sweep;
  EXPECT_TRUE(is_allowed(point(1.0, 1.0), sweep));
  SweepPoint full = point(1.0, 1.0), broken = full;
  full.fits = false;
  broken.error = "cannot run";
  EXPECT_FALSE(is_allowed(full, sweep));
  EXPECT_FALSE(is_allowed(broken, sweep));
}

TEST(SweepConstraints, WhatDoesNotFitDoesNotFitWhenItIsReadBack) {
  SweepPoint full = point(1.0, 1.0);
  EXPECT_TRUE(point_from_json(point_json(full)).fits);
  full.fits = false;
  EXPECT_FALSE(point_from_json(point_json(full)).fits);
}

TEST(SweepConstraints, EveryMetricIsReadBackAsItWasWritten) {
  SweepPoint written;
  written.index = 7;
  written.fits = true;
  for (std::size_t i = 0; i < kMetrics; ++i) written.metrics[i] = 1.5 + static_cast<double>(i);
  const SweepPoint read = point_from_json(point_json(written));
  EXPECT_EQ(read.index, 7U);
  for (std::size_t i = 0; i < kMetrics; ++i) EXPECT_EQ(read.metrics[i], written.metrics[i]) << i;
}

}  // namespace
}  // namespace ridgeline

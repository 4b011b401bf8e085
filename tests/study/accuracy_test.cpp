// Error tables and ranges from cases made by hand.
#include "sim/study/validation/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/study/validation/error_statistics.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

// 10 % below, 20 and 50 % above, and right.
TEST(ErrorStatistics, AreThoseOfRatios) {
  const ErrorStatistics s = error_statistics({1.2, 0.9, 1.0, 1.5});
  EXPECT_EQ(s.n, 4U);
  EXPECT_NEAR(s.median, 15, 1e-9);          // between 10 and 20
  EXPECT_NEAR(s.mean, 20, 1e-9);            // 80 / 4
  EXPECT_NEAR(s.p90, 20 + 0.7 * 30, 1e-9);  // at 2.7 of 0 to 3
  EXPECT_NEAR(s.worst, 50, 1e-9);
  EXPECT_NEAR(s.bias, 50 * std::log(1.2), 1e-9);  // between ln 1 and ln 1.2
  EXPECT_EQ(error_statistics({}).n, 0U);
  EXPECT_EQ(error_statistics({}).worst, 0.0);
}

TEST(Quantile, LiesBetweenOrderStatistics) {
  EXPECT_EQ(quantile({}, 0.5), 0.0);
  EXPECT_EQ(quantile({7}, 0.9), 7.0);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.0), 1.0);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 1.0), 4.0);
  EXPECT_NEAR(quantile({4, 1, 3, 2}, 0.25), 1.75, 1e-12);
}

ValidatedCase made_case(const char* hardware, double measured_us, double analytic_us, const char* seen_by = "") {
  ValidatedCase c;
  c.hardware = hardware, c.kind.family = "gemm", c.source = "ours", c.seen_by = seen_by;
  c.measured = microseconds(measured_us);
  c.predicted = {{"analytic", microseconds(analytic_us)}, {"roofline", microseconds(measured_us / 2)}};
  return c;
}

TEST(FamilyAccuracy, HasARowAGpuAFamilyAndAKind) {
  const std::vector<ValidatedCase> cases{made_case("nvidia-l4", 100, 110, "a fit"), made_case("nvidia-l4", 100, 130),
                                         made_case("nvidia-t4", 100, 80)};
  const std::vector<FamilyAccuracy> rows = family_accuracy(cases);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].hardware, "nvidia-l4");
  EXPECT_EQ(rows[0].kind, "analytic");
  EXPECT_EQ(rows[0].errors.n, 2U);
  EXPECT_NEAR(rows[0].errors.mean, 20, 1e-9);
  EXPECT_GT(rows[0].errors.bias, 0.0) << "predicted over measured";
  EXPECT_EQ(rows[0].seen.n, 1U);
  EXPECT_EQ(rows[0].seen.by, std::set<std::string>{"a fit"});
  EXPECT_EQ(rows[0].coverage.cases, 2U);
  EXPECT_EQ(rows[1].kind, "roofline");
  EXPECT_NEAR(rows[1].errors.median, 50, 1e-9);
  EXPECT_EQ(rows[1].coverage.cases, 0U);
  EXPECT_NEAR(rows[2].errors.median, 20, 1e-9);
  EXPECT_LT(rows[2].errors.bias, 0.0);
}

ValidatedStep made_validated(double step_ms) {
  ValidatedStep s;
  s.scenario.gpu.name = "a-gpu", s.predicted = made_prediction();
  s.measured.source = "ours", s.measured.step_time = made_ms(step_ms), s.measured.gpu_busy = made_ms(90);
  s.measured.kernel_count = 800, s.measured.peak_allocated = made_gib(8), s.measured.peak_reserved = made_gib(22);
  s.measured.device_used = made_gib(50);
  return s;
}

// 200 ms predicted (190 to 215) of 160 and of 200; 180 of 90 ms, 1000 of 800, 10 of 8, 11 of 22, 12.5 of 50 GiB.
TEST(StepAccuracy, HasARowAQuantity) {
  std::vector<ValidatedStep> steps{made_validated(160), made_validated(200)};
  steps[1].measured.peak_reserved.reset();
  std::map<std::string, StepAccuracy> rows;
  for (const StepAccuracy& row : step_accuracy(steps)) rows[row.quantity] = row;
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows["step time"].group, "a-gpu (ours)");
  EXPECT_NEAR(rows["step time"].errors.worst, 25, 1e-9);
  EXPECT_NEAR(rows["step time"].errors.mean, 12.5, 1e-9);
  EXPECT_EQ(rows["step time"].coverage.cases, 2U);
  EXPECT_EQ(rows["step time"].coverage.inside, 1U) << "160 is below 190";
  EXPECT_NEAR(rows["GPU busy"].errors.median, 100, 1e-9);
  EXPECT_NEAR(rows["kernels"].errors.median, 25, 1e-9);
  EXPECT_NEAR(rows["allocated"].errors.median, 25, 1e-9);
  EXPECT_NEAR(rows["reserved"].errors.median, 50, 1e-9);
  EXPECT_EQ(rows["reserved"].errors.n, 1U);
  EXPECT_NEAR(rows["device used"].errors.median, 75, 1e-9);
  steps[0].measured.host_fitted = true;
  const std::vector<StepAccuracy> fitted = step_accuracy(steps);
  EXPECT_EQ(fitted[0].quantity, "step time");
  EXPECT_EQ(fitted[1].quantity, "step time, host fitted");
  EXPECT_EQ(fitted[1].errors.n, 1U);
}

}  // namespace
}  // namespace ridgeline

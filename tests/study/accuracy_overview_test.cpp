// The short table: which groups of the long one share a row, and what becomes of their numbers.
#include "sim/study/validation/accuracy_overview.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ridgeline {
namespace {

/// Five times each, as many as a row needs.
std::vector<double> repeated(const std::vector<double>& ratios) {
  std::vector<double> out;
  for (int i = 0; i < 5; ++i) out.insert(out.end(), ratios.begin(), ratios.end());
  return out;
}
FamilyAccuracy kernels(const char* hardware, const char* source, const char* family, const std::vector<double>& ratios,
                       const char* kind = "analytic") {
  return {
      .hardware = hardware, .source = source, .family = family, .kind = kind, .errors = {}, .ratios = repeated(ratios)};
}
StepAccuracy step_row(const char* group, const char* quantity, std::vector<double> ratios) {
  return {.group = group, .quantity = quantity, .errors = {}, .ratios = std::move(ratios)};
}
StepAccuracy five_step_rows(const char* group, const char* quantity, const std::vector<double>& ratios) {
  return step_row(group, quantity, repeated(ratios));
}
std::vector<std::string> names(const std::vector<OverviewRow>& rows) {
  std::vector<std::string> out;
  for (const OverviewRow& row : rows) out.push_back(row.what);
  return out;
}

TEST(AccuracyOverview, BoardsOfOneChipShareARowAndOurFamiliesDoNot) {
  const std::vector<FamilyAccuracy> families{kernels("nvidia-a100-pcie-80gb", "public", "gemm", {1.1}),
                                             kernels("nvidia-a100-sxm4-40gb", "public", "reduction", {1.3}),
                                             kernels("nvidia-h200-sxm-141gb", "ours", "gemm", {1.0}),
                                             kernels("nvidia-h200-sxm-141gb", "ours", "attention", {1.0}),
                                             kernels("nvidia-h200-sxm-141gb", "wide", "gemm", {1.0}),
                                             kernels("nvidia-h200-sxm-141gb", "wide", "attention", {1.0}),
                                             kernels("nvidia-h200-sxm-141gb", "public, serving", "gemm", {1.0})};
  const auto rows = accuracy_overview(families, {});
  EXPECT_EQ(names(rows), (std::vector<std::string>{"kernels, A100, published", "products, H200", "attention, H200",
                                                   "kernels of small and unusual shapes, H200",
                                                   "products in serving libraries, H200"}));
  EXPECT_EQ(rows[0].errors.n, 10U);
  EXPECT_NEAR(rows[0].errors.mean, 20.0, 1e-9);
  EXPECT_EQ(rows[3].errors.n, 10U);
}

TEST(AccuracyOverview, PoolsWhatWasSeenAndWhatLayInside) {
  FamilyAccuracy one = kernels("nvidia-t4", "public", "gemm", {1.0, 1.2}), other = one;
  one.seen = {.n = 2, .by = {"a"}}, one.coverage = {.cases = 2, .inside = 1};
  other.family = "reduction", other.seen = {.n = 1, .by = {"b"}}, other.coverage = {.cases = 2, .inside = 2};
  const auto rows =
      accuracy_overview(std::vector{one, kernels("nvidia-t4", "public", "gemm", {0.5, 0.5, 0.9}, "roofline"), other,
                                    kernels("nvidia-t4", "public", "gemm", {9.0}, "analytic-datasheet")},
                        {});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].errors.n, 20U);
  EXPECT_EQ(rows[0].seen.n, 3U);
  EXPECT_EQ(rows[0].seen.by, (std::set<std::string>{"a", "b"}));
  EXPECT_EQ(rows[0].coverage.cases, 4U);
  EXPECT_EQ(rows[0].coverage.inside, 3U);
  ASSERT_TRUE(rows[0].roofline_median.has_value());
  EXPECT_NEAR(*rows[0].roofline_median, 50.0, 1e-9);
}

TEST(AccuracyOverview, ClustersThatOthersMeasuredAreToldApartAndFewCasesSayNothing) {
  const std::vector<double> five(5, 1.0);
  const auto rows = accuracy_overview(
      {},
      std::vector{step_row("nvidia-a100-sxm4-40gb (several GPUs, public, llm-foundry)", "step time", {1.0, 1.0}),
                  step_row("nvidia-a100-sxm4-80gb (several GPUs, public, llm-foundry)", "step time", {1.0, 1.0, 1.0}),
                  step_row("nvidia-a100-sxm4-80gb (several GPUs, public, bloom)", "step time", five),
                  step_row("nvidia-h100-sxm5-80gb (several GPUs, public, bloom)", "step time", {1.0, 1.0, 1.0, 1.0}),
                  step_row("nvidia-h100-sxm5-80gb (several GPUs, ours, four)", "step time", five)});
  EXPECT_EQ(names(rows), (std::vector<std::string>{"steps of several GPUs, A100, published (llm-foundry)",
                                                   "steps of several GPUs, A100, published (bloom)",
                                                   "steps of several GPUs, H100"}));
  EXPECT_EQ(rows[0].errors.n, 5U);
}

TEST(AccuracyOverview, StepsGoByChipByWhatRanAndByWhoMeasured) {
  const std::vector<StepAccuracy> steps{
      five_step_rows("nvidia-h200-sxm-141gb (h200)", "step time", {1.0}),
      five_step_rows("nvidia-h200-sxm-141gb (h200)", "allocated", {1.0}),
      five_step_rows("nvidia-h200-sxm-141gb (h200)", "reserved", {1.0}),
      five_step_rows("nvidia-h200-sxm-141gb (h200/more)", "step time, host fitted", {1.1}),
      five_step_rows("nvidia-h200-sxm-141gb (h200/compile/heldout)", "step time", {1.0}),
      five_step_rows("nvidia-h200-sxm-141gb (h200/parallel, pipelines)", "step time", {1.0}),
      five_step_rows("nvidia-h200-sxm-141gb (h200/parallel)", "allocated", {1.0}),
      five_step_rows("nvidia-h200-sxm-141gb (h200/parallel, one GPU)", "step time", {1.0}),
      five_step_rows("nvidia-rtx-3090 (public)", "step time", {1.0}),
      five_step_rows("nvidia-rtx-3090 (several GPUs, public)", "step time", {1.0}),
      five_step_rows("nvidia-rtx-3090 (several GPUs, public, not comparable)", "step time", {9.0})};
  const auto rows = accuracy_overview({}, steps);
  EXPECT_EQ(names(rows),
            (std::vector<std::string>{"steps, H200", "compiled steps, H200, held out", "steps of several GPUs, H200",
                                      "steps, RTX 3090, published", "steps of several GPUs, RTX 3090, published",
                                      "memory allocated, H200"}));
  EXPECT_EQ(rows[0].errors.n, 15U);
  EXPECT_TRUE(rows[0].is_time);
  EXPECT_EQ(rows.back().errors.n, 10U);
  EXPECT_FALSE(rows.back().is_time);
}

}  // namespace
}  // namespace ridgeline

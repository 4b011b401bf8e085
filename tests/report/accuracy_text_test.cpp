// Tables of errors, from rows made by hand.
#include "sim/report/text/accuracy_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<FamilyAccuracy> made_families() {
  FamilyAccuracy analytic;
  analytic.hardware = "nvidia-made", analytic.source = "wide", analytic.family = "gemm", analytic.kind = "analytic";
  analytic.errors = {.n = 40, .median = 3.1, .mean = 4.2, .p90 = 9.3, .worst = 21.4, .bias = -1.5};
  analytic.seen = {.n = 10, .by = {"a fit", "another"}};
  analytic.coverage = {.cases = 50, .inside = 46};
  FamilyAccuracy datasheet = analytic, roofline = analytic, published = analytic;
  datasheet.kind = "analytic-datasheet", datasheet.errors.median = 12.6, datasheet.seen = {}, datasheet.coverage = {};
  roofline.kind = "roofline", roofline.errors.median = 55.3;
  published.source = "public, serving", published.seen.n = 40;
  return {analytic, datasheet, roofline, published};
}

std::vector<StepAccuracy> made_steps() {
  StepAccuracy time, allocated;
  time.group = "nvidia-made, ours", time.quantity = "step time";
  time.errors = {.n = 7, .median = 1.11, .mean = 2.22, .p90 = 3.33, .worst = 4.44, .bias = 0.55};
  time.coverage = {.cases = 7, .inside = 7};
  allocated = time;
  allocated.quantity = "allocated", allocated.coverage = {}, allocated.seen = {.n = 7, .by = {"a fit"}};
  return {time, allocated};
}

TEST(AccuracyText, HasARowForEachFamilyAndForEachQuantity) {
  const std::string text = accuracy_text(made_families(), made_steps());
  EXPECT_THAT(text, HasSubstr("\nmade                 unusual   gemm         analytic               40     3.1     "
                              "4.2     9.3   -1.5   92 %  10 of 40: a fit; another\n"));
  EXPECT_THAT(text,
              HasSubstr("gemm         analytic-datasheet     40    12.6     4.2     9.3   -1.5         unseen\n"));
  EXPECT_THAT(text, HasSubstr("\nmade                 serving   gemm         analytic               40     3.1     "
                              "4.2     9.3   -1.5   92 %  a fit; another\n"));
  EXPECT_THAT(text, HasSubstr("\nmade, ours                             step time       7    1.11    2.22    4.44  "
                              "+0.55  100 %  unseen\n"));
  EXPECT_THAT(text, HasSubstr("allocated       7    1.11    2.22    4.44  +0.55         no fit\n"));
  EXPECT_THAT(accuracy_text(made_families(), {}), Not(HasSubstr("Training steps")));
}

TEST(AccuracyJson, HasEachNumberUnderItsKey) {
  const json out = json(accuracy_json(made_families(), made_steps()));
  ASSERT_EQ(out["kernels"].size(), 4U);
  EXPECT_EQ(out["kernels"][0], (json{{"hardware", "nvidia-made"},
                                     {"measured", "unusual"},
                                     {"family", "gemm"},
                                     {"numbers", "analytic"},
                                     {"n", 40},
                                     {"median_percent", 3.1},
                                     {"mean_percent", 4.2},
                                     {"p90_percent", 9.3},
                                     {"worst_percent", 21.4},
                                     {"bias_percent", -1.5},
                                     {"seen", 10},
                                     {"seen_by", {"a fit", "another"}},
                                     {"inside_range_percent", 92.0}}));
  EXPECT_FALSE(out["kernels"][1].contains("inside_range_percent"));
  EXPECT_EQ(out["steps"][0]["group"], "nvidia-made, ours");
  EXPECT_EQ(out["steps"][1]["quantity"], "allocated");
}

// Datasheet and roofline stand beside the analytic engine, in its row.
TEST(AccuracyMarkdown, PutsTheOtherKindsBeside) {
  ValidatedStep step, unmeasured;
  step.measured.name = "a step", step.scenario.gpu.name = "nvidia-made";
  step.measured.step_time = made_ms(160), step.predicted = made_prediction();
  unmeasured.measured.name = "memory alone";
  const std::string page = accuracy_markdown(made_families(), made_steps(), std::vector{step, unmeasured});
  EXPECT_THAT(page, HasSubstr("\n| made | unusual | gemm | 40 | 3.1 | 4.2 | 9.3 | -1.5 | 12.6 | 55.3 | 92 % | 10 of "
                              "40: a fit; another |\n"));
  EXPECT_THAT(page, HasSubstr("\n| made | serving | gemm | 40 | 3.1 | 4.2 | 9.3 | -1.5 |  |  | 92 % |"));
  EXPECT_THAT(page, HasSubstr("\n| made, ours | step time | 7 | 1.11 | 2.22 | 4.44 | +0.55 | 100 % | unseen |\n"));
  EXPECT_THAT(page, HasSubstr("\n| a step | made | 160 ms | 200 ms (190 ms to 215 ms) | +25.0 % | unseen |\n"));
  EXPECT_THAT(page, Not(HasSubstr("memory alone")));
  EXPECT_THAT(page, Not(HasSubstr("roofline |\n| made"))) << "a row a family, not a kind";
}

// Every shipped GPU has a row, or the line says that none of it was measured.
TEST(AccuracyMarkdown, NamesEveryShippedGpu) {
  const auto line_of = [](const std::string& page) {
    const auto begin = page.find("Without a row: ");
    return begin == page.npos ? "" : page.substr(begin, page.find('\n', begin) - begin);
  };
  std::vector<FamilyAccuracy> families = made_families();
  std::vector<StepAccuracy> steps = made_steps();
  const std::string nobody = line_of(accuracy_markdown(families, steps, {}));
  for (const std::string& name : hardware_names()) EXPECT_THAT(nobody, HasSubstr(name.substr(7)));
  for (const std::string& name : hardware_names()) {
    const bool kernels = name.size() % 2 == 0;
    if (kernels) families.push_back(families.front()), families.back().hardware = name;
    else steps.push_back(steps.front()), steps.back().group = name + " (public)";
  }
  EXPECT_EQ(line_of(accuracy_markdown(families, steps, {})), "");
}

TEST(AccuracySummary, HasEachNumberOfARow) {
  const std::vector<OverviewRow> rows{{.what = "products, MADE",
                                       .errors = {.n = 40, .median = 3.14, .mean = 4.26},
                                       .roofline_median = 55.3,
                                       .seen = {.n = 10, .by = {"a fit", "another"}},
                                       .coverage = {.cases = 50, .inside = 46}},
                                      {.what = "memory", .errors = {.n = 7}, .is_time = false}};
  const std::string text = accuracy_summary(rows);
  EXPECT_THAT(text, HasSubstr("\n| products, MADE | 40 | 3.1 % | 4.3 % | 55 % | 92 % | 10 of 40: a fit; another |\n"));
  EXPECT_THAT(text, HasSubstr("\n| memory | 7 | 0.0 % | 0.0 % |  |  | no fit |\n"));
}

TEST(AccuracyLines, KeepFiveRowsAndTheirOrder) {
  const std::vector<OverviewRow> rows{
      {.what = "memory allocated, H200", .errors = {.n = 7}, .is_time = false},
      {.what = "products, MADE", .errors = {.n = 40}},
      {.what = "products, H100", .errors = {.n = 40, .median = 3.14}, .coverage = {.cases = 50, .inside = 46}}};
  EXPECT_THAT(accuracy_lines(rows), ::testing::EndsWith("\n| GEMMs, H100, seen by no fit | 40 | 3.1 % | 92 % |\n"
                                                        "| memory of training steps, H200 | 7 | 0.0 % |  |\n"));
}

}  // namespace
}  // namespace ridgeline

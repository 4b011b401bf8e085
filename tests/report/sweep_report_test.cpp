// The points of a sweep as a table, as CSV and as JSON: two GPUs and three micro-batches, made by hand.
#include "sim/report/sweep_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/units/quantity.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Sweep made_sweep() {
  Sweep sweep;
  sweep.title = "a sweep";
  sweep.axes = {{"hardware", {{"nvidia-a", {}, 0}, {"nvidia-b", {}, 0}}},
                {"training.micro_batch", {{"1", {}, 0}, {"2", {}, 0}, {"4", {}, 0}}}};
  sweep.constraints = {{Metric::memory, 16 * kGiB, {}}};
  sweep.goal = {GoalKind::fastest, 0, {}};
  return sweep;
}

/// ms, samples/s, GiB and USD an hour; what is not said follows from the index.
SweepPoint made_point(std::uint64_t index, double ms, double samples, double gib, double price) {
  SweepPoint point;
  point.index = index, point.fits = true;
  const auto i = static_cast<double>(index);
  point.metrics = {ms * 1e-3,  ms * 0.9e-3,      ms * 1.2e-3,     samples,   512 * samples,
                   gib * kGiB, (gib - 2) * kGiB, 0.3 + i / 100.0, 0.9,       200 + i,
                   2 + i,      0.5 + i / 100.0,  price,           price * 3, 150 + i};
  return point;
}

/// The fourth cannot run, the third does not fit, the last takes more memory than is allowed.
std::vector<SweepPoint> made_points() {
  std::vector<SweepPoint> points{made_point(0, 10, 100, 8, 1.5),  made_point(1, 16, 125, 12, 1.5),
                                 made_point(2, 20, 200, 50, 1.5), SweepPoint{},
                                 made_point(4, 17, 120, 9, 0.5),  made_point(5, 19, 210, 20, 0.5)};
  points[2].fits = false;
  points[3].index = 3;
  points[3].error = "no such kernel, \"sorry\"";
  return points;
}

// 125 x 512 tokens are 64,000. All columns would take 105: the goal does not ask for the ridge. The best of both GPUs
// have one micro-batch, which is said once.
TEST(SweepText, TheFastestThatFitComeFirst) {
  EXPECT_EQ(sweep_text(made_sweep(), made_points(), 10), R"(a sweep
6 points, 4 fit, 3 keep the constraints, 1 cannot run

fastest that fit, by * tokens a second:
  hardware  micro_batch  *tokens/s  step ms  samples/s  GiB  MFU %    W  J/sample  $/1e6  fits
  a         2               64,000       16        125   12     31  201      0.51    4.5   yes
  b         2               61,440       17        120    9     34  204      0.54    1.5   yes
  a         1               51,200       10        100    8     30  200       0.5    4.5   yes
  no room for ridge F/B (--format csv has all)

best of each hardware:
  hardware  *tokens/s  step ms  samples/s  GiB  MFU %    W  J/sample  $/1e6  ridge F/B  fits
  a            64,000       16        125   12     31  201      0.51    4.5        151   yes
  b            61,440       17        120    9     34  204      0.54    1.5        154   yes
  all with micro_batch 2
)");
}

TEST(SweepText, RowsBeyondThoseAskedForAreCounted) {
  EXPECT_THAT(sweep_text(made_sweep(), made_points(), 1), HasSubstr("\n  … and 2 more (--rows, --format csv)\n"));
}

TEST(SweepText, WithoutAGoalEveryPointIsShownAndWhyItCannotRun) {
  Sweep sweep = made_sweep();
  sweep.goal = {};
  sweep.constraints.clear();
  EXPECT_EQ(sweep_text(sweep, made_points(), 10), R"(a sweep
6 points, 4 fit, 1 cannot run

points:
  hardware  micro_batch  step ms  samples/s  GiB  MFU %    W  J/sample  $/1e6  ridge F/B  fits
  a         1                 10        100    8     30  200       0.5    4.5        150   yes
  a         2                 16        125   12     31  201      0.51    4.5        151   yes
  a         4                 20        200   50     32  202      0.52    4.5        152    NO
  b         1            cannot run: no such kernel, "sorry"
  b         2                 17        120    9     34  204      0.54    1.5        154   yes
  b         4                 19        210   20     35  205      0.55    1.5        155   yes
)");
}

// On one GPU the column says nothing: where the page is too narrow, it is said once.
TEST(SweepText, WhatIsTheSameInAllRowsIsSaidOnce) {
  Sweep sweep = made_sweep();
  sweep.axes[0].values.resize(1);
  std::vector<SweepPoint> points = made_points();
  points.resize(2);
  EXPECT_EQ(sweep_text(sweep, points, 10), R"(a sweep
2 points, 2 fit, 2 keep the constraints

fastest that fit, by * tokens a second:
  micro_batch  *tokens/s  step ms  samples/s  GiB  MFU %    W  J/sample  $/1e6  ridge F/B  fits
  2               64,000       16        125   12     31  201      0.51    4.5        151   yes
  1               51,200       10        100    8     30  200       0.5    4.5        150   yes
  all with hardware a

best of each micro batch:
  micro_batch  *tokens/s  step ms  samples/s  GiB  MFU %    W  J/sample  $/1e6  ridge F/B  fits
  1               51,200       10        100    8     30  200       0.5    4.5        150   yes
  2               64,000       16        125   12     31  201      0.51    4.5        151   yes
  all with hardware a
  none of 4
)");
}

TEST(SweepText, TheCheapestReachARateAndAreOrderedByRent) {
  Sweep sweep = made_sweep();
  sweep.goal = {GoalKind::cheapest, 110, {}};
  const std::string text = sweep_text(sweep, made_points(), 10);
  EXPECT_THAT(text, HasSubstr("cheapest that reach 110 samples a second, by * rent an hour:\n"
                              "  hardware  micro_batch  *$/h  $/1e6  step ms  samples/s  GiB  MFU %    W  J/sample  "
                              "ridge F/B  fits\n"
                              "  b         2             0.5    1.5       17        120    9     34  204      0.54  "
                              "      154   yes\n"
                              "  a         2             1.5    4.5       16        125   12     31  201      0.51  "
                              "      151   yes\n"));
}

TEST(SweepText, AFrontNamesWhatItIsOf) {
  Sweep sweep = made_sweep();
  sweep.goal = {GoalKind::pareto, 0, {Metric::step_time, Metric::energy_per_sample}};
  sweep.constraints = {{Metric::memory, {}, 1e15}};
  const std::string text = sweep_text(sweep, made_points(), 10);
  EXPECT_THAT(text, HasSubstr("\n\nnothing is better in all of step time, energy per sample than these:\n  none\n"));
  EXPECT_THAT(text, HasSubstr("6 points, 4 fit, 0 keep the constraints, 1 cannot run"));
}

// A recording need not say how many samples its step took.
TEST(SweepText, WhatIsNotKnownIsADash) {
  Sweep sweep = made_sweep();
  std::vector<SweepPoint> points{made_point(0, 10, 0, 0, 1.5)};
  points[0].metrics[static_cast<std::size_t>(Metric::mfu)] = 0;
  EXPECT_THAT(
      sweep_text(sweep, points, 10),
      HasSubstr("  a         1                    -       10          -    -      -  200         -      -   yes\n"));
}

// Labels of 60 columns leave no room: the sweep changes no hardware, so that it has no ridge to leave out, and what
// orders the rows stays.
TEST(SweepText, NumbersThatTheGoalAsksForAreNotLeftOut) {
  Sweep sweep = made_sweep();
  const std::string wide(60, 'x');
  sweep.axes = {{"case", {{wide + "1", {}, 0}, {wide + "2", {}, 0}}}};
  std::vector<SweepPoint> points{made_point(0, 10, 100, 8, 1.5), made_point(1, 16, 125, 12, 0.5)};
  sweep.goal = {GoalKind::cheapest, 50, {}};
  const std::string text = sweep_text(sweep, points, 10);
  EXPECT_THAT(text, HasSubstr("*$/h  $/1e6  step ms"));
  EXPECT_THAT(text, HasSubstr("\n  no room for W, MFU %, J/sample (--format csv has all)\n"));
}

TEST(SweepCsv, HasALineAPointInBaseUnits) {
  const std::string csv = sweep_csv(made_sweep(), made_points());
  EXPECT_THAT(csv, HasSubstr("point,hardware,training.micro_batch,step_time_s,step_low_s,step_high_s,samples_per_s,"
                             "tokens_per_s,memory_bytes,peak_allocated_bytes,mfu,gpu_active,power_w,energy_j,"
                             "energy_per_sample_j,price_usd_per_hour,price_usd_per_million,ridge_flop_per_byte,fits,"
                             "allowed,error\n"
                             "0,nvidia-a,1,0.01,0.009,0.011999999999999999,100,51200,8589934592,6442450944,0.3,0.9,"
                             "200,2,0.5,1.5,4.5,150,true,true,\n"));
  EXPECT_THAT(csv, HasSubstr("\n2,nvidia-a,4,0.02,"));
  EXPECT_THAT(csv, HasSubstr(",152,false,false,\n"));
  EXPECT_THAT(csv, HasSubstr("\n3,nvidia-b,1" + std::string(18, ',') + "\"no such kernel, \"\"sorry\"\"\"\n"));
  EXPECT_THAT(csv, HasSubstr(",155,true,false,\n"));
}

TEST(SweepJson, HasAxesGoalBestAndPoints) {
  Sweep sweep = made_sweep();
  sweep.goal.samples_per_s = 110;
  const json out = json(sweep_json(sweep, made_points()));
  EXPECT_EQ(out["title"], "a sweep");
  EXPECT_EQ(out["engine"], "analytic");
  EXPECT_EQ(out["axes"], (json{{{"name", "hardware"}, {"values", {"nvidia-a", "nvidia-b"}}},
                               {{"name", "training.micro_batch"}, {"values", {"1", "2", "4"}}}}));
  EXPECT_EQ(out["goal"]["search"], "fastest");
  EXPECT_EQ(out["goal"]["samples_per_s"], 110.0);
  EXPECT_EQ(out["goal"]["of"], json::array());
  EXPECT_EQ(out["ranked_by"], json({"tokens_per_s", "step_time_s"}));
  EXPECT_EQ(out["best"], json({1, 4})) << "100 samples a second are too few";
  EXPECT_EQ(out["best_of_each"], (json{{"axis", "hardware"}, {"points", {1, 4}}}));
  ASSERT_EQ(out["points"].size(), 6U);
  const json& second = out["points"][1];
  EXPECT_EQ(second["point"], 1);
  EXPECT_EQ(second["fits"], true);
  EXPECT_EQ(second["allowed"], true);
  EXPECT_EQ(second["at"], (json{{"hardware", "nvidia-a"}, {"training.micro_batch", "2"}}));
  EXPECT_EQ(second["step_time_s"], 0.016);
  EXPECT_EQ(second["peak_allocated_bytes"], 10 * kGiB);
  EXPECT_EQ(second["ridge_flop_per_byte"], 151.0);
  EXPECT_EQ(out["points"][3]["error"], "no such kernel, \"sorry\"");
  EXPECT_FALSE(out["points"][3].contains("allowed"));
  EXPECT_EQ(out["points"][5]["allowed"], false);
}

TEST(SweepJson, AValueThatNothingAnswersIsNull) {
  Sweep sweep = made_sweep();
  sweep.constraints[0].below = 10 * kGiB;
  std::vector<SweepPoint> points = made_points();
  points.resize(3);
  EXPECT_EQ(json(sweep_json(sweep, points))["best_of_each"]["points"], json({0, nullptr}));
}

}  // namespace
}  // namespace ridgeline

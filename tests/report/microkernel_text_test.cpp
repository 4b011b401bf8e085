// The page of microkernels, from two results made by hand: units, medians and plots.
#include "sim/report/text/microkernel_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

struct MicrokernelPage : ::testing::Test {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  ProbeResult shown, again, fitted;

  void SetUp() override {
    shown.device_name = "A board", shown.date = "2026-01-02";
    ProbeCurve curve;
    curve.name = "l2_reread_clean", curve.unit = "B/s", curve.what = "an array read again";
    const double mib = 1048576;
    curve.points = {{{{"bytes", 4 * mib}}, 4e12, 1e-6, 0},
                    {{{"bytes", 512 * mib}}, 2e12, 1e-6, 0},
                    {{{"bytes", 768 * mib}}, 1e12, 1e-6, 0}};
    shown.curves = {curve, {"not_described", "B/s", "", {{{}, 1, 1, 0}}}};
    again = fitted = shown;
    again.curves[0].points.resize(2);
    again.curves[0].points[0].value = 4.2e12, again.curves[0].points[1].value = 1.8e12;
    fitted.curves[0].points.resize(1);
  }
  [[nodiscard]] MicrokernelEvidence evidence() const { return {&gpu, &shown, &again, &fitted}; }
  [[nodiscard]] ComparedCurve curve() const { return compare_microkernels(evidence()).at(0); }
};

// What the engines say stands in terabytes a second, beside it the errors of two of them in percent.
TEST_F(MicrokernelPage, ARowHasMeasuredAndPredictedInTheUnitOfItsHeading) {
  const std::string page = microkernel_markdown({evidence()});
  EXPECT_THAT(page, HasSubstr("## l2_reread_clean (`hw/probe/l2_residency.cu`)\n\nAn array read again; TB/s.\n"));
  const ComparedCurve compared = curve();
  const char* labels[] = {"4.00 MiB ", " 512 MiB*", " 768 MiB*"};  // seen by the fit, and not
  double most = 4e12;
  for (const ComparedPoint& p : compared.points) most = std::max({most, p.predicted[1], p.predicted[2]});
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& predicted = compared.points[i].predicted;
    const double measured = compared.points[i].point.value;
    const std::string row = fmt::format("\n{} {:>8} {:>8.4g} {:>8.4g} {:>8.4g}  {:>+6.1f} {:>+6.1f} |", labels[i],
                                        4 >> i, predicted[0] / 1e12, predicted[1] / 1e12, predicted[2] / 1e12,
                                        100 * (predicted[1] / measured - 1), 100 * (predicted[2] / measured - 1));
    const std::size_t at = page.find(row);
    ASSERT_NE(at, page.npos) << row << page;
    const std::string plot = page.substr(at + row.size(), page.find('\n', at + 1) - at - row.size());
    const auto place = [&](double value) { return static_cast<std::size_t>(std::lround(18 * value / most)); };
    ASSERT_GT(plot.size(), place(measured)) << plot;
    EXPECT_TRUE(plot[place(measured)] == 'o' || plot[place(measured)] == '#') << plot;
    ASSERT_GT(plot.size(), place(predicted[1])) << plot;
    EXPECT_TRUE(plot[place(predicted[1])] == 'x' || plot[place(predicted[1])] == '#') << plot;
  }
}

// Runs differ by 5 % and by 10 %: of two the larger is the upper median. One point was seen, two were not.
TEST_F(MicrokernelPage, AtAGlanceStandMedianAndWorst) {
  const ComparedCurve compared = curve();
  const auto error = [&](std::size_t point, std::size_t engine) {
    return 100 * std::abs(compared.points[point].predicted[engine] / compared.points[point].point.value - 1);
  };
  const auto two = [&](std::size_t engine) {
    const double worst = std::max(error(1, engine), error(2, engine));
    return fmt::format("{:.1f} / {:.1f}", worst, worst);
  };
  EXPECT_THAT(microkernel_markdown({evidence()}),
              HasSubstr(fmt::format("\n| l2_reread_clean | 3 | 10.0 / 10.0 | {0:.1f} / {0:.1f} | {1} | {2} |  |\n",
                                    error(0, 1), two(1), two(2))));
}

TEST_F(MicrokernelPage, AnotherBoardHasTheLastColumn) {
  const Gpu h100 = load_gpu("nvidia-h100-sxm5-80gb");
  ProbeResult other = shown;
  other.device_name = "Another board";
  other.curves[0].points.resize(1);
  const MicrokernelEvidence second{&h100, &other, nullptr, nullptr};
  const double error = 100 * std::abs(compare_microkernels(second).at(0).points.at(0).error(1));
  const std::string page = microkernel_markdown({evidence(), second});
  EXPECT_THAT(page, HasSubstr(fmt::format(" | {0:.1f} / {0:.1f} |\n", error)));
  EXPECT_THAT(page, HasSubstr("of an A\nboard (2026-01-02) curve by curve"));
  EXPECT_THAT(page, HasSubstr("an Another board"));
  EXPECT_THAT(page, HasSubstr("\nMeasured and not compared here: not_described. "));
}

}  // namespace
}  // namespace ridgeline

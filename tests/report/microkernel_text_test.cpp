// The page of microkernels, from two results made by hand: units, medians and plots.
#include "sim/report/text/microkernel_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/hardware/load_gpu.h"
#include "sim/report/json/microkernel_json.h"

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

// Of the keys of its points a curve is drawn along the first that has several values; "reads" comes before "bytes".
TEST_F(MicrokernelPage, JsonHasEveryPointOfEachCurve) {
  const ComparedCurve compared = curve();
  const auto expected = [&](const char* along) {
    nlohmann::json points = nlohmann::json::array();
    const auto at = [](const ComparedPoint& p, const std::string& key) {
      const auto found = p.point.at.find(key);
      return found == p.point.at.end() ? nlohmann::json() : nlohmann::json(found->second);
    };
    for (std::size_t i = 0; i < 3; ++i) {
      const ComparedPoint& p = compared.points[i];
      points.push_back({{"name", p.at},
                        {"at", p.point.at},
                        {"x", at(p, along)},
                        {"measured", 4e12 / (i == 0 ? 1.0 : 2.0 * static_cast<double>(i))},
                        {"again", i == 0   ? nlohmann::json(4.2e12)
                                  : i == 1 ? nlohmann::json(1.8e12)
                                           : nlohmann::json()},
                        {"spread", p.point.spread},
                        {"seen", i == 0},
                        {"predicted", p.predicted}});
    }
    return nlohmann::json{{{"gpu", gpu.title},
                           {"device", "A board"},
                           {"date", "2026-01-02"},
                           {"engines", {"roofline", "analytic", "simulate"}},
                           {"curves",
                            {{{"name", "l2_reread_clean"},
                              {"source", "l2_residency.cu"},
                              {"what", "an array read again"},
                              {"unit", "B/s"},
                              {"along", along},
                              {"points", points}}}}}};
  };
  shown.curves[0].points[2].value = 1e12;
  EXPECT_EQ(nlohmann::json(microkernels_json({evidence()})), expected("bytes"));
  shown.curves[0].points.resize(1);
  const nlohmann::json one = nlohmann::json(microkernels_json({evidence()}))[0]["curves"][0];
  EXPECT_EQ(one["along"], "") << "one value is no course";
  EXPECT_TRUE(one["points"][0]["x"].is_null());
  shown.curves[0].points.clear();
  EXPECT_TRUE(nlohmann::json(microkernels_json({evidence()}))[0]["curves"].empty());
}

// A plot has 19 columns, from nothing to the largest of what is measured and predicted.
TEST_F(MicrokernelPage, PlotsReachFromNothingToTheLargest) {
  const ComparedCurve compared = curve();
  double most = 0;
  for (const ComparedPoint& p : compared.points) most = std::max({most, p.point.value, p.predicted[1], p.predicted[2]});
  const std::string page = microkernel_markdown({evidence()});
  for (const ComparedPoint& p : compared.points) {
    std::string plot(19, ' ');
    const auto put = [&](double value, char mark) {
      char& at = plot[static_cast<std::size_t>(std::lround(18 * value / most))];
      at = at == ' ' ? mark : '#';
    };
    const auto place = [&](double value) { return std::lround(18 * value / most); };
    put(p.predicted[1], 'x');
    if (place(p.predicted[2]) != place(p.predicted[1])) put(p.predicted[2], 's');
    put(p.point.value, 'o');
    plot.erase(plot.find_last_not_of(' ') + 1);
    EXPECT_THAT(page, HasSubstr(fmt::format("{:>+6.1f} |{}\n", 100.0 * p.error(2), plot)));
  }
}

// What is far above the other values does not leave the plot, and columns are as wide as the longest name.
TEST_F(MicrokernelPage, RowsOfOneCurveAreAligned) {
  shown.curves[0].points[0].value = 4e13;
  const std::string page = microkernel_markdown({evidence()});
  EXPECT_THAT(page, HasSubstr("\n          measured roofline analytic simulate      errors, %\n4.00 MiB        40 "));
  EXPECT_TRUE(page.ends_with("modelled.\n")) << page.substr(page.size() - 60);
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(line.starts_with("|") || line.size() <= 98) << line;
  EXPECT_THAT(
      page,
      HasSubstr("\nGenerated by `ridgeline validate --write-microkernels` from results of `./dev probe`: of an A\n"
                "board (2026-01-02) curve by curve"));
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

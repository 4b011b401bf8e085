#include "sim/report/text/microkernel_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ridgeline {
namespace {

constexpr std::size_t kAnalytic = 1, kSimulate = 2;
constexpr int kPlot = 18;

struct Unit {
  const char* shown;
  double scale;
};
Unit unit_of(const std::string& unit) {
  if (unit == "B/s") return {"TB/s", 1e-12};
  if (unit == "FLOP/s") return {"TFLOP/s", 1e-12};
  if (unit == "op/s") return {"G/s", 1e-9};
  if (unit == "1/s") return {"T/s", 1e-12};
  return {unit.c_str(), 1.0};
}

/// Words in lines of at most 98 columns.
std::string wrapped(const std::string& text) {
  std::string out, line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + 1 + word.size() > 98) {
      out += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return out + line;
}

std::string number(double value) { return std::isfinite(value) && value > 0.0 ? fmt::format("{:.4g}", value) : "-"; }

/// Median and worst of what `of` says of the points that `wanted` picks.
template <typename Wanted, typename Of>
std::string median_and_worst(const ComparedCurve& curve, Wanted wanted, Of of) {
  std::vector<double> errors;
  for (const ComparedPoint& p : curve.points)
    if (wanted(p)) errors.push_back(std::abs(of(p)));
  if (errors.empty()) return "";
  std::sort(errors.begin(), errors.end());
  return fmt::format("{:.1f} / {:.1f}", 100.0 * errors[errors.size() / 2], 100.0 * errors.back());
}

std::string glance(const std::vector<std::vector<ComparedCurve>>& all) {
  std::string out =
      "| curve | points | runs differ | analytic: seen | unseen | simulate: unseen | H100: analytic |\n"
      "|---|---|---|---|---|---|---|\n";
  const auto again = [](const ComparedPoint& p) { return *p.again / p.point.value - 1.0; };
  const auto seen = [](const ComparedPoint& p) { return p.seen; };
  const auto unseen = [](const ComparedPoint& p) { return !p.seen; };
  const auto repeated = [](const ComparedPoint& p) { return p.again.has_value(); };
  for (const ComparedCurve& curve : all.front()) {
    const auto error_of = [](std::size_t engine) {
      return [engine](const ComparedPoint& p) { return p.error(engine); };
    };
    std::string other;
    if (all.size() > 1)
      for (const ComparedCurve& c : all[1])
        if (c.kernel->curve == curve.kernel->curve) other = median_and_worst(c, unseen, error_of(kAnalytic));
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", curve.kernel->curve, curve.points.size(),
                       median_and_worst(curve, repeated, again), median_and_worst(curve, seen, error_of(kAnalytic)),
                       median_and_worst(curve, unseen, error_of(kAnalytic)),
                       median_and_worst(curve, unseen, error_of(kSimulate)), other);
  }
  return out + "\n";
}

/// A row from 0 to the largest value: measured o, analytic x, simulate s, what meets #.
std::string bar(const ComparedPoint& p, double most) {
  const auto place = [&](double v) {
    return static_cast<std::size_t>(std::clamp(static_cast<int>(std::lround(kPlot * v / most)), 0, kPlot));
  };
  std::string text(kPlot + 1, ' ');
  const auto put = [&](double value, char mark) {
    char& at = text[place(value)];
    at = at == ' ' ? mark : '#';
  };
  put(p.predicted[kAnalytic], 'x');
  if (place(p.predicted[kSimulate]) != place(p.predicted[kAnalytic])) put(p.predicted[kSimulate], 's');
  put(p.point.value, 'o');
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::string section(const ComparedCurve& curve) {
  const Unit unit = unit_of(curve.unit);
  double most = 0.0;
  std::size_t widest = 0;
  for (const ComparedPoint& p : curve.points) {
    most = std::max({most, p.point.value, p.predicted[kAnalytic], p.predicted[kSimulate]});
    widest = std::max(widest, p.at.size());
  }
  std::string what = curve.what + "; " + unit.shown + ".";
  what[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(what[0])));
  std::string out =
      fmt::format("## {} (`hw/probe/{}`)\n\n{}\n\n```\n", curve.kernel->curve, curve.kernel->source, wrapped(what));
  out += fmt::format("{:{}}  {:>8} {:>8} {:>8} {:>8}  {:>13}\n", "", widest, "measured", "roofline", "analytic",
                     "simulate", "errors, %");
  for (const ComparedPoint& p : curve.points)
    out += fmt::format("{:>{}}{} {:>8} {:>8} {:>8} {:>8}  {:>+6.1f} {:>+6.1f} |{}\n", p.at, widest, p.seen ? ' ' : '*',
                       number(unit.scale * p.point.value), number(unit.scale * p.predicted[0]),
                       number(unit.scale * p.predicted[kAnalytic]), number(unit.scale * p.predicted[kSimulate]),
                       100.0 * p.error(kAnalytic), 100.0 * p.error(kSimulate), bar(p, most));
  return out + "```\n\n";
}

}  // namespace

std::string microkernel_markdown(const std::vector<MicrokernelEvidence>& evidence) {
  std::vector<std::vector<ComparedCurve>> all;
  for (const MicrokernelEvidence& e : evidence) all.push_back(compare_microkernels(e));
  const ProbeResult& shown = *evidence.front().shown;
  const std::string other = evidence.size() > 1 ? "an " + evidence[1].shown->device_name : "nothing";
  std::string out = "# Microkernels: measured and predicted\n\n";
  const auto paragraph = [&](const std::string& text) { out += wrapped(text) + "\n\n"; };
  paragraph(
      fmt::format("Generated by `ridgeline validate --write-microkernels` from results of `./dev probe`: of an {} ({}) "
                  "curve by curve, and in the last column of the first table of {}. A test fails when the page is out "
                  "of date. How each predicted number comes about: section 4a of [model.md](model.md). Tolerances: "
                  "`tests/study/microkernels_test.cpp`.",
                  shown.device_name, shown.date, other));
  out += "## At a glance\n\n";
  paragraph(
      "Median and worst of |predicted / measured - 1|, in percent. *Seen*: points of the run on which the laws' "
      "constants were fitted, and curves whose constants were set with a later run in view. *Unseen*: points between "
      "those, measured later on a board of the same kind. No constant was fitted on the H100; its hardware file is "
      "calibrated from its own run. *Runs differ*: the H200 measured twice.");
  out += glance(all);
  paragraph(
      "In the curves below `*` marks unseen points; in the plots `o` is measured, `x` analytic, `s` simulate where it "
      "differs, `#` where they meet; the left edge is 0.");
  for (const ComparedCurve& curve : all.front()) out += section(curve);
  std::string others;
  for (const ProbeCurve& curve : shown.curves) {
    const bool described = std::any_of(all.front().begin(), all.front().end(),
                                       [&](const ComparedCurve& c) { return c.kernel->curve == curve.name; });
    if (!described) others += (others.empty() ? "" : ", ") + curve.name;
  }
  paragraph("Measured and not compared here: " + others +
            ". The host's share of a launch and pageable copies depend on the host; global_latency_time is "
            "global_latency in time; wave_fullest_sm is compared in the tests; clock and power of a lasting load are "
            "where the hardware file's numbers come from, and what zeros save is not modelled.");
  out.pop_back();
  return out;
}

}  // namespace ridgeline

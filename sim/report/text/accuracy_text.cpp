#include "sim/report/text/accuracy_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/units/parse.h"

namespace ridgeline {
namespace {

std::string hardware_name(const std::string& hardware) {
  return hardware.starts_with("nvidia-") ? hardware.substr(7) : hardware;
}

/// "unusual": our cases of small ops, odd sides and head sizes, convolutions of any shape.
std::string source_name(const std::string& source) {
  if (source == "public") return "published";
  if (source == "public, serving") return "serving";
  if (source == "compiled" || source == "calls") return source;
  return source == "wide" ? "unusual" : "ours";
}

const FamilyAccuracy* find_kind(std::span<const FamilyAccuracy> families, const FamilyAccuracy& like,
                                std::string_view kind) {
  for (const FamilyAccuracy& f : families)
    if (f.hardware == like.hardware && f.source == like.source && f.family == like.family && f.kind == kind) return &f;
  return nullptr;
}

/// Of the cases of another kind of prediction; nothing where there is none.
std::string median_of(const FamilyAccuracy* other, int digits, std::string_view unit = "") {
  return other != nullptr ? fmt::format("{:.{}f}{}", other->errors.median, digits, unit) : "";
}

/// "unseen", or which fit saw how many of a row's cases.
std::string seen_text(const SeenRows& seen, std::size_t n) {
  if (seen.n == 0) return "unseen";
  std::string by;
  for (const std::string& one : seen.by) by += (by.empty() ? "" : "; ") + one;
  return seen.n == n ? by : fmt::format("{} of {}: {}", seen.n, n, by);
}
/// Of a row of steps: memory follows from rules, no constant of it was fitted.
std::string seen_text(const StepAccuracy& s) {
  const bool time = s.quantity.starts_with("step time") || s.quantity == "GPU busy";
  return time ? seen_text(s.seen, s.errors.n) : "no fit";
}

/// A line for the GPUs of hw/ that no row is about; nothing where there are none.
std::string shipped_without_rows(std::span<const FamilyAccuracy> families, std::span<const StepAccuracy> steps) {
  std::string names;
  for (const std::string& name : hardware_names()) {
    if (std::any_of(families.begin(), families.end(), [&](const auto& f) { return f.hardware == name; }) ||
        std::any_of(steps.begin(), steps.end(), [&](const auto& s) { return s.group.starts_with(name + " ("); }))
      continue;
    names += (names.empty() ? "" : ", ") + hardware_name(name);
  }
  if (names.empty()) return "";
  return fmt::format("\nWithout a row: {}. No time on them is among the measurements; every prediction is estimated.\n",
                     names);
}

std::string coverage_text(const RangeCoverage& coverage) {
  return coverage.cases == 0 ? "" : fmt::format("{:.0f} %", 100.0 * coverage.share());
}

}  // namespace

std::string accuracy_text(std::span<const FamilyAccuracy> families, std::span<const StepAccuracy> steps) {
  std::string out = "Kernels: |predicted / measured - 1| in percent; inside: of the range of the other half\n\n";
  out += fmt::format("{:<20} {:<9} {:<12} {:<19} {:>5} {:>7} {:>7} {:>7} {:>6} {:>6}  {}\n", "GPU", "measured",
                     "family", "numbers", "n", "median", "mean", "P90", "bias", "inside", "seen by a fit");
  for (const FamilyAccuracy& f : families)
    out += fmt::format("{:<20} {:<9} {:<12} {:<19} {:>5} {:>7.1f} {:>7.1f} {:>7.1f} {:>+6.1f} {:>6}  {}\n",
                       hardware_name(f.hardware), source_name(f.source), f.family, f.kind, f.errors.n, f.errors.median,
                       f.errors.mean, f.errors.p90, f.errors.bias, coverage_text(f.coverage),
                       seen_text(f.seen, f.errors.n));
  if (!steps.empty()) {
    out += "\nTraining steps\n\n";
    out += fmt::format("{:<38} {:<12} {:>4} {:>7} {:>7} {:>7} {:>6} {:>6}  {}\n", "GPU", "quantity", "n", "median",
                       "mean", "worst", "bias", "inside", "seen by a fit");
    for (const StepAccuracy& s : steps)
      out += fmt::format("{:<38} {:<12} {:>4} {:>7.2f} {:>7.2f} {:>7.2f} {:>+6.2f} {:>6}  {}\n", hardware_name(s.group),
                         s.quantity, s.errors.n, s.errors.median, s.errors.mean, s.errors.worst, s.errors.bias,
                         coverage_text(s.coverage), seen_text(s));
  }
  return out;
}

nlohmann::ordered_json accuracy_json(std::span<const FamilyAccuracy> families, std::span<const StepAccuracy> steps) {
  using nlohmann::ordered_json;
  const auto errors = [](ordered_json head, const ErrorStatistics& e, const SeenRows& seen,
                         const RangeCoverage& coverage) {
    head.update({{"n", e.n},
                 {"median_percent", e.median},
                 {"mean_percent", e.mean},
                 {"p90_percent", e.p90},
                 {"worst_percent", e.worst},
                 {"bias_percent", e.bias},
                 {"seen", seen.n},
                 {"seen_by", seen.by}});
    if (coverage.cases > 0) head["inside_range_percent"] = 100.0 * coverage.share();
    return head;
  };
  ordered_json kernels = ordered_json::array(), step_rows = ordered_json::array();
  for (const FamilyAccuracy& f : families)
    kernels.push_back(errors(
        {{"hardware", f.hardware}, {"measured", source_name(f.source)}, {"family", f.family}, {"numbers", f.kind}},
        f.errors, f.seen, f.coverage));
  for (const StepAccuracy& s : steps)
    step_rows.push_back(errors({{"group", s.group}, {"quantity", s.quantity}}, s.errors, s.seen, s.coverage));
  return {{"kernels", std::move(kernels)}, {"steps", std::move(step_rows)}};
}

std::string case_lines(std::span<const ValidatedCase> cases) {
  std::string out;
  for (const ValidatedCase& c : cases) {
    nlohmann::ordered_json line{{"hardware", c.hardware},
                                {"die", c.die},
                                {"software", c.software},
                                {"measured", source_name(c.source)},
                                {"family", c.kind.family},
                                {"kind", c.kind.key()},
                                {"op", c.op},
                                {"measured_us", in_microseconds(c.measured)}};
    if (!c.shape.empty()) line["case"] = c.shape;
    for (const auto& [kind, time] : c.predicted) line[kind + "_us"] = in_microseconds(time);
    if (c.by_bytes) line["by_bytes_us"] = in_microseconds(*c.by_bytes);
    out += line.dump() + "\n";
  }
  return out;
}

std::string accuracy_markdown(std::span<const FamilyAccuracy> families, std::span<const StepAccuracy> steps,
                              std::span<const ValidatedStep> each) {
  std::string out =
      "# How accurate it is\n\nGenerated by `ridgeline validate --write-docs` from the measurements in "
      "measurements; a test fails when it is out of date.\n\n"
      "## In short\n\nOur own times were measured on NVIDIA H200s, and on H100s to which no constant was fitted; other "
      "GPUs "
      "are compared with published times.\nThe last column says what a fit, or the description of the GPU, saw of a "
      "row; "
      "half of all cases make the ranges that the other half is counted against.\nNames in brackets are sources of "
      "[measurements](../measurements/README.md).\n\n";
  out += accuracy_summary(accuracy_overview(families, steps));
  out +=
      "\n## Kernels\n\nErrors |predicted / measured - 1| in percent; the bias is the median of the signed log error.\n"
      "*seen by a fit*: \"unseen\" where no constant was fitted on a case and the description of its GPU states no "
      "number with its source; else which did. Rows under four times the launch that they contain are left out.\n"
      "*inside*: share of the cases inside a range made of the other half of all cases.\n"
      "*analytic* uses the measured numbers of the GPU's file, *datasheet* the same laws with datasheet numbers and "
      "estimates alone, *roofline* the datasheet's ceilings.\n"
      "*ours*: usual sizes; *unusual*: sides below 32, small ops, few rows, odd head sizes and sequences, lists of "
      "tensors, convolutions of any shape; *compiled*: kernels of torch.compile; *calls*: single calls of other "
      "operations.\n\n"
      "| GPU | measured | family | n | median | mean | P90 | bias | datasheet median | roofline median "
      "| inside | seen by a fit |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const FamilyAccuracy& f : families) {
    if (f.kind != "analytic") continue;
    const FamilyAccuracy* datasheet = find_kind(families, f, "analytic-datasheet");
    const FamilyAccuracy* roofline = find_kind(families, f, "roofline");
    out += fmt::format("| {} | {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:+.1f} | {} | {} | {} | {} |\n",
                       hardware_name(f.hardware), source_name(f.source), f.family, f.errors.n, f.errors.median,
                       f.errors.mean, f.errors.p90, f.errors.bias, median_of(datasheet, 1), median_of(roofline, 1),
                       coverage_text(f.coverage), seen_text(f.seen, f.errors.n));
  }
  out +=
      "\n## Training steps\n\nEager steps and compiled ones, by source. Percent. *inside*: share of the steps whose "
      "time lies in the predicted range.\nSteps from other machines are predicted with a host that nobody measured "
      "(hw/hosts/default.yaml).\n\n| GPU | quantity | n | "
      "median | mean | worst | bias | inside | seen by a fit |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const StepAccuracy& s : steps)
    out += fmt::format("| {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:+.2f} | {} | {} |\n", hardware_name(s.group),
                       s.quantity, s.errors.n, s.errors.median, s.errors.mean, s.errors.worst, s.errors.bias,
                       coverage_text(s.coverage), seen_text(s));
  out += shipped_without_rows(families, steps);
  out += "\n| step | GPU | measured | predicted | error | seen by a fit |\n|---|---|---|---|---|---|\n";
  for (const ValidatedStep& s : each) {
    if (!s.measured.step_time) continue;
    out += fmt::format(
        "| {} | {} | {} | {} ({} to {}) | {:+.1f} % | {} |\n", s.measured.name, hardware_name(s.scenario.gpu.name),
        to_string(*s.measured.step_time), to_string(s.predicted.step.time), to_string(s.predicted.step.low),
        to_string(s.predicted.step.high), 100.0 * (ratio(s.predicted.step.time, *s.measured.step_time) - 1.0),
        s.measured.seen_by.empty() ? "unseen" : s.measured.seen_by);
  }
  return out;
}

std::string accuracy_summary(std::span<const OverviewRow> rows) {
  std::string out =
      "| what | n | median error | mean | roofline's median | inside the range | seen by a fit |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const OverviewRow& row : rows)
    out += fmt::format("| {} | {} | {:.1f} % | {:.1f} % | {} | {} | {} |\n", row.what, row.errors.n, row.errors.median,
                       row.errors.mean, row.roofline_median ? fmt::format("{:.0f} %", *row.roofline_median) : "",
                       coverage_text(row.coverage), row.is_time ? seen_text(row.seen, row.errors.n) : "no fit");
  return out;
}

std::string accuracy_lines(std::span<const OverviewRow> rows) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kRows{
      {{"products, H100", "GEMMs, H100, seen by no fit"},
       {"attention, H100", "attention, H100, seen by no fit"},
       {"steps, H200", "training steps, H200"},
       {"steps, A100, published", "training steps, A100, as published"},
       {"memory allocated, H200", "memory of training steps, H200"}}};
  std::string out = "| what | cases | median error | inside the range |\n|---|---|---|---|\n";
  for (const auto& [name, label] : kRows)
    for (const OverviewRow& row : rows)
      if (row.what == name)
        out += fmt::format("| {} | {} | {:.1f} % | {} |\n", label, row.errors.n, row.errors.median,
                           coverage_text(row.coverage));
  return out;
}

}  // namespace ridgeline

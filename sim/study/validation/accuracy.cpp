#include "sim/study/validation/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace ridgeline {
namespace {

void add_seen(SeenRows& rows, const std::string& by) {
  if (by.empty()) return;
  ++rows.n;
  rows.by.insert(by);
}

}  // namespace

std::vector<FamilyAccuracy> family_accuracy(std::span<const ValidatedCase> cases) {
  struct Group {
    std::vector<double> ratios;
    SeenRows seen;
    RangeCoverage coverage;
  };
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Group> groups;
  const std::vector<bool> inside = inside_ranges_of_the_other_half(cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const ValidatedCase& c = cases[i];
    for (const auto& [kind, time] : c.predicted) {
      Group& group = groups[{c.hardware, c.source, std::string(c.kind.family), kind}];
      group.ratios.push_back(ratio(time, c.measured));
      add_seen(group.seen, c.seen_by);
      if (kind == "analytic") group.coverage.add(inside[i]);
    }
  }
  std::vector<FamilyAccuracy> out;
  for (const auto& [key, group] : groups)
    out.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key),
                   error_statistics(group.ratios), group.seen, group.coverage, group.ratios});
  return out;
}

std::vector<StepAccuracy> step_accuracy(std::span<const ValidatedStep> steps) {
  struct Group {
    std::vector<double> ratios;
    SeenRows seen;
    RangeCoverage coverage;
  };
  std::vector<StepAccuracy> out;
  std::map<std::string, std::map<std::string, Group>> groups;
  const auto add = [&](const ValidatedStep& s, const char* quantity, const auto& measured, double predicted) {
    if (!measured) return;
    double value = 0;
    if constexpr (std::is_same_v<std::decay_t<decltype(*measured)>, Seconds>) value = measured->value();
    else value = static_cast<double>(*measured);
    if (value <= 0) return;
    Group& group = groups[fmt::format("{} ({})", s.scenario.gpu.name, s.measured.source)][quantity];
    group.ratios.push_back(predicted / value);
    add_seen(group.seen, s.measured.seen_by);
    if (std::string_view(quantity).starts_with("step time")) group.coverage.add(inside_range(s));
  };
  for (const ValidatedStep& s : steps) {
    const StepPrediction& time = s.predicted.step;
    const auto& memory = s.predicted.memory;
    add(s, s.measured.host_fitted ? "step time, host fitted" : "step time", s.measured.step_time, time.time.value());
    add(s, "GPU busy", s.measured.gpu_busy, time.gpu_busy.value());
    add(s, "kernels", s.measured.kernel_count, static_cast<double>(time.kernel_count));
    add(s, "allocated", s.measured.peak_allocated, static_cast<double>(memory.peak_allocated));
    add(s, "reserved", s.measured.peak_reserved, static_cast<double>(memory.peak_reserved));
    add(s, "device used", s.measured.device_used, static_cast<double>(memory.device_used));
  }
  for (const auto& [group, quantities] : groups)
    for (const char* quantity :
         {"step time", "step time, host fitted", "GPU busy", "kernels", "allocated", "reserved", "device used"})
      if (const auto found = quantities.find(quantity); found != quantities.end())
        out.push_back({group, quantity, error_statistics(found->second.ratios), found->second.seen,
                       found->second.coverage, found->second.ratios});
  return out;
}

}  // namespace ridgeline

#include "sim/study/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "sim/scenario/residual_ranges.h"

namespace ridgeline {

std::vector<FamilyAccuracy> family_accuracy(std::span<const ValidatedCase> cases) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::vector<double>> groups;
  for (const ValidatedCase& c : cases) {
    for (const auto& [kind, time] : c.predicted)
      groups[{c.hardware, c.source, c.family, kind}].push_back(ratio(time, c.measured));
  }
  std::vector<FamilyAccuracy> out;
  for (const auto& [key, ratios] : groups)
    out.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key), error_statistics(ratios)});
  return out;
}

std::vector<StepAccuracy> step_accuracy(std::span<const ValidatedStep> steps) {
  std::vector<StepAccuracy> out;
  std::map<std::string, std::map<std::string, std::vector<double>>> groups;
  const auto add = [&](const std::string& group, const char* quantity, const auto& measured, double predicted) {
    if (!measured) return;
    double value = 0;
    if constexpr (std::is_same_v<std::decay_t<decltype(*measured)>, Seconds>) value = measured->value();
    else value = static_cast<double>(*measured);
    if (value > 0) groups[group][quantity].push_back(predicted / value);
  };
  for (const ValidatedStep& s : steps) {
    const std::string group = fmt::format("{} ({})", s.scenario.gpu.name, s.measured.source);
    add(group, s.measured.host_fitted ? "step time, host fitted" : "step time", s.measured.step_time,
        s.predicted.step.time.value());
    add(group, "GPU busy", s.measured.gpu_busy, s.predicted.step.gpu_busy.value());
    add(group, "kernels", s.measured.kernel_count, static_cast<double>(s.predicted.step.kernel_count));
    add(group, "allocated", s.measured.peak_allocated, static_cast<double>(s.predicted.memory.peak_allocated));
    add(group, "reserved", s.measured.peak_reserved, static_cast<double>(s.predicted.memory.peak_reserved));
    add(group, "device used", s.measured.device_used, static_cast<double>(s.predicted.memory.device_used));
  }
  for (const auto& [group, quantities] : groups)
    for (const char* quantity :
         {"step time", "step time, host fitted", "GPU busy", "kernels", "allocated", "reserved", "device used"})
      if (const auto found = quantities.find(quantity); found != quantities.end())
        out.push_back({group, quantity, error_statistics(found->second)});
  return out;
}

nlohmann::ordered_json residual_table(std::span<const ValidatedCase> cases) {
  // The least and the greatest of n cases hold a share (n - 1) / (n + 1) of further ones between them: 19 hold nine in
  // ten. A smaller group says nothing of its own.
  constexpr std::size_t kFewest = 20;
  constexpr double kLevel = 0.955;  // of each end; interleaved halves of the cases then hold nine in ten of each other
  std::map<std::string, std::vector<double>> groups;
  for (const ValidatedCase& c : cases) {
    for (const auto& [kind, time] : c.predicted) {
      if (kind == "analytic-datasheet") continue;
      const double residual = 1.0 / ratio(time, c.measured);
      for (const std::string_view bucket : {size_bucket(time), std::string_view("any")})
        groups[fmt::format("{}/{}/{}/{}", kind, c.hardware, c.family, bucket)].push_back(residual);
    }
  }
  nlohmann::ordered_json ranges = nlohmann::ordered_json::object();
  for (const auto& [key, residuals] : groups) {
    if (residuals.size() < kFewest) continue;
    const auto rounded = [](double value) { return std::round(value * 1e4) / 1e4; };
    // A finite sample knows its tails less well than it seems: the levels are those of conformal prediction.
    const double n = static_cast<double>(residuals.size()), level = std::min(1.0, kLevel * (n + 1.0) / n);
    ranges[key] = {{"n", residuals.size()},
                   {"low", rounded(quantile(residuals, 1.0 - level))},
                   {"high", rounded(quantile(residuals, level))}};
  }
  return {{"what",
           "4.5 % and 95.5 % quantiles of measured / predicted kernel time over cases no constant was fitted on: "
           "engine/GPU/family/size"},
          {"made_by", "ridgeline validate --write-residuals"},
          {"ranges", std::move(ranges)}};
}

}  // namespace ridgeline

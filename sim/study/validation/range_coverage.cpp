#include "sim/study/validation/range_coverage.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "sim/answer/ranges/residual_ranges.h"
#include "sim/hardware/load_gpu.h"
#include "sim/study/validation/residual_table.h"

namespace ridgeline {

std::vector<bool> inside_ranges_of_the_other_half(std::span<const ValidatedCase> cases) {
  std::vector<bool> inside(cases.size());
  std::map<std::string, Gpu> gpus;
  for (const ValidatedCase& c : cases) gpus.try_emplace(c.hardware, load_gpu(c.hardware));
  for (const std::size_t tested : {0, 1}) {
    std::vector<ValidatedCase> known;
    for (std::size_t i = 1 - tested; i < cases.size(); i += 2) known.push_back(cases[i]);
    const ResidualRanges ranges = ResidualRanges::from(nlohmann::json(residual_table(known)));
    std::map<std::string, std::unique_ptr<ChipRanges>> of_chip;
    for (const auto& [name, gpu] : gpus) of_chip[name] = std::make_unique<ChipRanges>(ranges, gpu);
    for (std::size_t i = tested; i < cases.size(); i += 2) {
      const ValidatedCase& c = cases[i];
      const Seconds predicted = c.predicted.at("analytic");
      const Range range = of_chip.at(c.hardware)->of(c.kind, predicted, "analytic");
      const double residual = ratio(c.measured, predicted);
      inside[i] = residual >= range.low && residual <= range.high;
    }
  }
  return inside;
}

bool inside_range(const ValidatedStep& step) {
  return step.measured.step_time && *step.measured.step_time >= step.predicted.step.low &&
         *step.measured.step_time <= step.predicted.step.high;
}

}  // namespace ridgeline

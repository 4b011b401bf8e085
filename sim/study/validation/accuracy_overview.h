// A short table of errors: the groups of the long one, put together by chip and by what was run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/study/validation/accuracy.h"

namespace ridgeline {

struct OverviewRow {
  std::string what;  ///< "products, H200", "steps on several GPUs, A100, published"
  ErrorStatistics errors;
  std::optional<double> roofline_median{};  ///< of the same kernels by the roofline, in percent
  SeenRows seen{};
  RangeCoverage coverage{};  ///< no cases: what has no range (memory)
  bool is_time = true;       ///< no fit sees memory
};

/// Kernels first, then times of steps, then memory. Boards of one chip ("a100-pcie-80gb", "a100-sxm4-40gb") share a
/// row. Kernels that we measured have a row for each family, those of unusual shapes and published ones one of all
/// families. Steps whose sources compare unlike things ("not comparable") are left out; the long table has them.
std::vector<OverviewRow> accuracy_overview(std::span<const FamilyAccuracy> families,
                                           std::span<const StepAccuracy> steps);

}  // namespace ridgeline

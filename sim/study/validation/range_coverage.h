// How often a measurement lies inside the range that a prediction prints.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/study/validation/kernel_validation.h"
#include "sim/study/validation/step_validation.h"

namespace ridgeline {

struct RangeCoverage {
  std::size_t cases = 0, inside = 0;
  [[nodiscard]] double share() const {
    return cases > 0 ? static_cast<double>(inside) / static_cast<double>(cases) : 1;
  }
  void add(bool is_inside) {
    ++cases;
    inside += is_inside ? 1 : 0;
  }
};

/// For each case, whether it lies inside a range made without it: cases at even positions against ranges of those at
/// odd ones, and the reverse. Predictions of the analytic engine.
std::vector<bool> inside_ranges_of_the_other_half(std::span<const ValidatedCase> cases);

/// Whether a step's measured time lies between the predicted low and high. false without a time.
bool inside_range(const ValidatedStep& step);

}  // namespace ridgeline

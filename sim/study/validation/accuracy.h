// Error tables made from validated kernels and steps.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/study/validation/error_statistics.h"
#include "sim/study/validation/kernel_validation.h"
#include "sim/study/validation/range_coverage.h"
#include "sim/study/validation/step_validation.h"

namespace ridgeline {

/// Which of a group's rows a fit, or the description of the GPU, saw.
struct SeenRows {
  std::size_t n = 0;
  std::set<std::string> by{};  ///< in words
};

struct FamilyAccuracy {
  std::string hardware, source, family, kind;
  ErrorStatistics errors;
  SeenRows seen{};
  RangeCoverage coverage{};      ///< of the analytic engine's ranges, made of the other half of all cases
  std::vector<double> ratios{};  ///< predicted / measured, each case
};
/// One row for each hardware, source of the measurements, family and kind of prediction that has cases, in that order.
std::vector<FamilyAccuracy> family_accuracy(std::span<const ValidatedCase> cases);

/// One quantity of steps: predicted against measured.
struct StepAccuracy {
  std::string group;     ///< hardware and source
  std::string quantity;  ///< "step time", "step time, host fitted", "GPU busy", "kernels", "allocated", "reserved",
                         ///< "device used"
  ErrorStatistics errors;
  SeenRows seen{};
  RangeCoverage coverage{};      ///< of the range of the step's time
  std::vector<double> ratios{};  ///< predicted / measured, each step
};
/// One row for each group and quantity that has steps.
std::vector<StepAccuracy> step_accuracy(std::span<const ValidatedStep> steps);

}  // namespace ridgeline

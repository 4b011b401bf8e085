// Error tables and residual ranges made from validated kernels and steps.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "sim/study/error_statistics.h"
#include "sim/study/kernel_validation.h"
#include "sim/study/step_validation.h"

namespace ridgeline {

struct FamilyAccuracy {
  std::string hardware, source, family, kind;
  ErrorStatistics errors;
};
/// One row for each hardware, source of the measurements, family and kind of prediction that has cases, in that order.
std::vector<FamilyAccuracy> family_accuracy(std::span<const ValidatedCase> cases);

/// One quantity of steps: predicted against measured.
struct StepAccuracy {
  std::string group;     ///< hardware and source
  std::string quantity;  ///< "step time", "step time, host fitted", "GPU busy", "kernels", "allocated", "reserved",
                         ///< "device used"
  ErrorStatistics errors;
};
/// Compiled steps are left out: their law is not part of this engine yet.
std::vector<StepAccuracy> step_accuracy(std::span<const ValidatedStep> steps);

/// hw/residuals.json: 4.5 % and 95.5 % quantiles of measured / predicted by engine, GPU, family and size (or any size).
/// Groups of fewer than 20 cases are left out.
nlohmann::ordered_json residual_table(std::span<const ValidatedCase> cases);

}  // namespace ridgeline

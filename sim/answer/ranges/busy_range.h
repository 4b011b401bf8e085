// How far the sum of a step's kernel times may be off, from the measured errors of operations of the same kinds.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/answer/ranges/residual_ranges.h"
#include "sim/program/launched_kernels.h"
#include "sim/timeline/step_times.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// Share of a validated step's kernel time that may be of estimated kernels.
inline constexpr double kEstimatedShare = 0.2;

struct BusyRange {
  double low = 1.0, high = 1.0;  ///< factors on the busy time
  bool validated = true;
  std::string why_not;  ///< a note, where it is not
};

/// `times` has one entry a kernel. Errors of one op's kernels are taken as equal wherever it occurs; of the errors of
/// different ops a part is shared within the family, and the rest independent. Equation: docs/model/ranges.md.
/// `recorded_here`: the step was recorded on this GPU, so that operations without a rule have the time they took.
BusyRange busy_range(std::span<const LaunchedKernel> kernels, std::span<const KernelTime> times,
                     const ChipRanges& ranges, std::string_view engine);
BusyRange busy_range(std::span<const LaunchedKernel> kernels, const StepTimes& times, const ChipRanges& ranges,
                     std::string_view engine, bool recorded_here = false);

/// The shipped residuals, read the first time that they are needed.
const ResidualRanges& residual_ranges();

}  // namespace ridgeline

// From what the microkernels measured to the measured section of a hardware file.
//
// Each number of the section has one rule (calibration_rules.cpp): which curve, which points, how. A rule also says
// how far its points may scatter. What the microkernels cannot tell (counters, energies of products, what PyTorch
// loads) stays as it was, with its source. Results are refused as a whole: a file calibrated in part would mix GPUs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/hardware/hardware_sheet.h"
#include "sim/study/calibration/probe_result.h"

namespace ridgeline {

/// One number as the microkernels give it.
struct Extracted {
  double value = 0.0;   ///< in the unit of its rule
  double spread = 0.0;  ///< relative, of the points it comes from
};

struct CalibrationRule {
  std::string_view key;                  ///< of the hardware file
  std::string_view unit;                 ///< as written there; empty for shares
  std::string_view how;                  ///< for its source
  std::vector<std::string_view> curves;  ///< all of them must be there
  double most_spread;                    ///< of the points used
  Extracted (*extract)(const ProbeResult&, const Gpu&);
};

/// Kernels that write besides and do not run in step lose lines at shorter distances than one array that is read again
/// and again: rotating-buffer timings of PyTorch's kernels on an H200 gave 0.556 and 0.828 where clean rereads fall
/// from 0.614 to 0.882. A hardware file has the former.
inline constexpr double kMixedFull = 0.906, kMixedNone = 0.939;

/// In the order in which they depend on each other (a rule sees the GPU with the earlier ones applied).
const std::vector<CalibrationRule>& calibration_rules();

/// The measured section anew: probe values, and what it held before of everything else, in the order of `sheet`.
struct Calibration {
  std::vector<SheetRow> rows;           ///< the whole section
  std::vector<std::string> from_probe;  ///< keys of those rows that the microkernels gave
  std::vector<std::string> conditions;  ///< sentences about the measurement
};

/// `before` is the GPU with its datasheet numbers, `kept` the rows of the measured section so far, `order` all keys of
/// the description in order. Throws UserError with one line for each reason: another GPU, a missing microkernel, points
/// that scatter too much, a result that cannot be.
Calibration calibrate(const ProbeResult& probe, const Gpu& before, const std::vector<SheetRow>& kept,
                      const std::vector<std::string>& order);

}  // namespace ridgeline

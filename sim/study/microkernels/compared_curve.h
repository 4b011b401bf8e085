// Measured curves of the microkernels beside what the engines say of them, and which of their points the laws have
// seen.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/microkernels/microkernel.h"

namespace ridgeline {

inline constexpr std::array kMicrokernelEngines{"roofline", "analytic", "simulate"};

struct ComparedPoint {
  std::string at;                                            ///< "4.00 MiB", "loads 2, warps 8"
  ProbePoint point;                                          ///< as measured
  std::array<double, kMicrokernelEngines.size()> predicted;  ///< in the curve's unit
  std::optional<double> again;                               ///< what another run measured there
  bool seen = false;  ///< a law's constant was set with this point (or one of its conditions) in view

  /// predicted / measured - 1
  [[nodiscard]] double error(std::size_t engine) const { return predicted[engine] / point.value - 1.0; }
};

struct ComparedCurve {
  const Microkernel* kernel = nullptr;
  std::string what, unit;
  std::vector<ComparedPoint> points;
};

/// What was measured on one GPU.
struct MicrokernelEvidence {
  const Gpu* gpu = nullptr;
  const ProbeResult* shown = nullptr;
  const ProbeResult* again = nullptr;   ///< another run; may be null
  const ProbeResult* fitted = nullptr;  ///< the run that constants were fitted on; null: none of this GPU
};

/// The described curves and points of `shown`, in its order.
std::vector<ComparedCurve> compare_microkernels(const MicrokernelEvidence& evidence);

}  // namespace ridgeline

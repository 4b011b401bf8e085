// How a GPU was when a step was recorded on it, as the recording's own kernels tell: at which clock its SMs ran, and
// what the recording added to each kernel. Neither is fitted to a total: the clock comes from kernels that compute or
// wait in cycles beside those that the DRAM limits, the addition from short ones, and both from half of the calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/units/quantity.h"

namespace ridgeline {

/// A recorded call and what is predicted of its kernels.
struct ComparableCall {
  std::size_t name = 0, like = 0;  ///< calls of one number are of one operator, or do the same work
  std::int64_t kernels = 1;
  Seconds measured{}, beside{};   ///< beside: of it while kernels of other streams ran
  Seconds predicted{}, slowed{};  ///< on the GPU as described, and with kSlowedClock of its clock
  bool asked = true;              ///< of the half that may say how the GPU was
  [[nodiscard]] bool alone() const;
};

inline constexpr double kSlowedClock = 0.8;

struct RecordedConditions {
  double clock = 1.0;  ///< over that of the GPU as described, as far as the SMs' clock decides
  Seconds added{};     ///< to each kernel
  /// What the call's kernels are predicted to take under these.
  [[nodiscard]] Seconds of(const ComparableCall& call) const;
};

/// `fixed`: what an empty kernel takes.
RecordedConditions recorded_conditions(std::span<const ComparableCall> calls, Seconds fixed);

}  // namespace ridgeline

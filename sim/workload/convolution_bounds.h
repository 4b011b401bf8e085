// The largest convolutions that mean anything: beyond them counts of pixels and taps would overflow.
#pragma once

#include <string>

#include "sim/workload/op.h"

namespace ridgeline {

inline constexpr std::int64_t kLargestImageSide = std::int64_t{1} << 20;       ///< pixels
inline constexpr std::int64_t kLargestKernelOrStride = std::int64_t{1} << 14;  ///< pixels
inline constexpr std::int64_t kMostGroups = std::int64_t{1} << 20;
inline constexpr double kMostTensorElements = 1e13;                            ///< of one tensor

/// What is too small or too large, for a person; empty for a convolution that can be.
std::string out_of_bounds(const Convolution& op);

}  // namespace ridgeline

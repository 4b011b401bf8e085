// Names of enumerators as reports and JSON spell them.
#pragma once

#include <array>
#include <string_view>

#include "sim/launch/kernel_launch.h"
#include "sim/timing/kernel_time.h"
#include "sim/workload/op_trace.h"

namespace ridgeline {

inline constexpr std::array<std::string_view, 6> kTimeClassNames{
    "tensor_contraction", "normalization", "elementwise", "optimizer", "copy", "communication"};
inline constexpr std::array<std::string_view, 8> kLimiterNames{"compute", "dram",   "l2",    "shared_memory",
                                                               "latency", "launch", "power", "link"};
inline constexpr std::array<std::string_view, 7> kCategoryNames{
    "weights", "gradients", "optimizer_state", "activations", "temporaries", "workspaces", "inputs"};
inline constexpr std::array<std::string_view, 6> kPhaseNames{"setup",    "forward",   "backward",
                                                             "clipping", "optimizer", "other"};

constexpr std::string_view phase_name(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

}  // namespace ridgeline

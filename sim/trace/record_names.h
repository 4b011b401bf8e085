// Names of phases and categories as trace files spell them.
#pragma once

#include <array>
#include <string_view>

#include "sim/workload/op_trace.h"

namespace ridgeline::trace {

inline constexpr std::array<std::string_view, 7> kCategoryWords{
    "weights", "gradients", "optimizer_state", "activations", "temporaries", "workspaces", "inputs"};
inline constexpr std::array<std::string_view, 6> kPhaseWords{"setup",    "forward",   "backward",
                                                             "clipping", "optimizer", "other"};
static_assert(kCategoryWords[static_cast<std::size_t>(Category::inputs)] == "inputs");
static_assert(kPhaseWords[static_cast<std::size_t>(Phase::other)] == "other");

}  // namespace ridgeline::trace

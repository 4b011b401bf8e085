// Names of precisions and of attention's code, in training and in use.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "sim/config/value.h"
#include "sim/workload/training.h"

namespace ridgeline {

inline constexpr std::array<std::pair<std::string_view, Precision>, 6> kPrecisions{{{"fp32", Precision::fp32},
                                                                                    {"tf32", Precision::tf32},
                                                                                    {"amp-fp16", Precision::amp_fp16},
                                                                                    {"amp-bf16", Precision::amp_bf16},
                                                                                    {"bf16", Precision::bf16},
                                                                                    {"apex-o2", Precision::apex_o2}}};
inline constexpr std::array<std::pair<std::string_view, AttentionRequest>, 6> kAttention{
    {{"eager", AttentionRequest::eager},
     {"sdpa", AttentionRequest::sdpa},
     {"flash", AttentionRequest::flash},
     {"cudnn", AttentionRequest::cudnn},
     {"efficient", AttentionRequest::efficient},
     {"math", AttentionRequest::math}}};

/// The precision of a section that names none. `assumed`: what networks of this size usually have.
Precision implied_precision(const config::Value& section, Precision assumed);

}  // namespace ridgeline

// Networks whose sequences ranks share: torch.distributed.tensor.experimental.context_parallel and what it refuses.
#pragma once

#include <string>
#include <string_view>

#include "sim/workload/model.h"
#include "sim/workload/training.h"

namespace ridgeline::families {

inline constexpr std::string_view kMaskNotShared =
    "PyTorch's context_parallel raises NotImplementedError (attn_bias is not supported yet) where attention gets a "
    "mask";
inline constexpr std::string_view kMathNotShared =
    "PyTorch's context_parallel raises NotImplementedError (CP only supports flash attention and memory efficient "
    "attention now) where keys that heads share reach neither";

/// Whether a token sees only those before it: each rank then has a slice of a sequence's head and one of its tail.
bool sees_backwards(const ModelDescription& model);

/// Why ranks cannot share the sequences of a network; empty where they can.
std::string why_not_shared(const ModelDescription& model, const TrainingDescription& training);

}  // namespace ridgeline::families

// Rows of a table by index; the backward pass makes a dense gradient of the whole table.
#pragma once

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// `indices` [...] of int64, possibly an expanded view (then copied first); saves the indices.
Tensor embedding(Eager& eager, const Tensor& table, const Tensor& indices);

/// Up to this many tokens the backward pass is one kernel after the fill; beyond, it sorts the indices.
inline constexpr std::int64_t kEmbeddingTokensUnsorted = 3072;

}  // namespace ridgeline::eager::aten

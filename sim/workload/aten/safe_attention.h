// scaled_dot_product_attention made of ordinary operations, as PyTorch 2.11 runs it, or as it did before 2.5.
#pragma once

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// In fp32 whatever the operands are, before PyTorch 2.5 in their own type with a plain softmax; both factors of scores
/// are multiplied by the root of their scale. `mask` may be undefined, and may want a gradient; it is added in place.
/// Rows that see nothing become zeros: one more comparison, reduction and selection of all scores.
Tensor safe_attention(Eager& eager, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, bool causal,
                      bool with_dropout);

}  // namespace ridgeline::eager::aten

// Products of experts: rows in the order of their experts, each group with a matrix of its own.
#pragma once

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// x [rows, in] by weights [experts, out, in]: [rows, out], as many rows for each expert. Autocast has no rule for a
/// grouped product: operands stay as they are, and in fp32 each expert's product is a call of its own. Saves both.
Tensor grouped_products(Eager& eager, const Tensor& x, const Tensor& weights);
/// Rows set to zero where the mask is set; the gradient too.
Tensor masked_in_place(Eager& eager, Tensor x, const Tensor& mask);

}  // namespace ridgeline::eager::aten

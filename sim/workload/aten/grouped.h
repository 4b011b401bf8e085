// Products of experts: rows in the order of their experts, each group with a matrix of its own.
#pragma once

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// x [experts, rows, in] by weights [experts, out, in]: [experts, rows, out]. Autocast has no rule for a grouped
/// product: operands stay as they are, and in fp32 each expert's product is a call of its own. Saves both.
Tensor grouped_products(Eager& eager, const Tensor& x, const Tensor& weights);

}  // namespace ridgeline::eager::aten

// Products of fp8 as they were timed (files of kind "fp8-products").
#pragma once

#include <vector>

#include "sim/study/validation/measured_ops.h"

namespace ridgeline {

/// The rows that are products of fp8: scales of a tensor with sums in the tensor cores or in fp32, scales of rows;
/// those in e5m2 and what stands beside the products are left out. `machine` is 0. The file must outlive the result.
/// Throws UserError for a row that is no kernel case.
std::vector<MeasuredOp> load_scaled_products(const MeasuredFile& file);

}  // namespace ridgeline

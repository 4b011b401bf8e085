// Sums, means and norms.
#pragma once

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// Sums the dimensions that broadcasting added or stretched, without autograd.
Tensor sum_to(Eager& eager, const Tensor& x, const Dims& sizes);
/// Mean over the last dimension, which stays with size 1.
Tensor mean_last(Eager& eager, const Tensor& x);
/// x less the largest number of its last dimension (max and sub); saves where that was.
Tensor less_largest(Eager& eager, const Tensor& x);
/// Mean over everything.
Tensor mean_all(Eager& eager, const Tensor& x);
/// Mean over the first of two dimensions, without autograd.
Tensor mean_first(Eager& eager, const Tensor& x);

}  // namespace ridgeline::eager::aten

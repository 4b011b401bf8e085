// Functions that models write out in operations of their own.
#pragma once

#include <initializer_list>

#include "sim/workload/eager/tensor.h"
#include "sim/workload/op.h"

namespace ridgeline::eager::aten {

/// x³, in fp32 under autocast; saves x.
Tensor cube(Eager& eager, const Tensor& x);
/// 1 / (1 + exp(-x)); saves its result.
Tensor sigmoid(Eager& eager, const Tensor& x);
/// x/2 (1 + tanh(√(2/π) (x + 0.0447 x³))): eight operations.
Tensor gelu_written_out(Eager& eager, const Tensor& x);
/// The same as one node: nine kernels, eighteen backward, x alone saved.
Tensor bloom_gelu(Eager& eager, const Tensor& x);
/// x · sigmoid(1.7 x): three operations.
Tensor quick_gelu(Eager& eager, const Tensor& x);
/// max(x, 0)².
Tensor relu_squared(Eager& eager, const Tensor& x);
/// cap · tanh(x / cap): three operations.
Tensor soft_cap(Eager& eager, const Tensor& x);
/// x, at most a number and (`both`) at least another; saves x. Backward: comparisons, then the gradient where x lies
/// between the bounds (clamp_backward of FunctionsManual.cpp).
Tensor clamp(Eager& eager, const Tensor& x, bool both);
/// The larger of x and a number on the device; saves both.
Tensor at_least(Eager& eager, const Tensor& x, const Tensor& number);
/// x / d; saves d alone where that has no gradient.
Tensor divide_by(Eager& eager, const Tensor& x, const Tensor& d);
/// x += b, with gradients of both; x is a fresh result.
Tensor added_to(Eager& eager, Tensor x, const Tensor& b);
/// A kernel without a gradient of `inputs`: comparisons, masks, indices.
Tensor plain(Eager& eager, PointwiseFunction function, const Dims& sizes, DType type,
             std::initializer_list<const Tensor*> inputs);

}  // namespace ridgeline::eager::aten

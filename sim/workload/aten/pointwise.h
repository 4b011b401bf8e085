// Point-wise operations: one result element from one element of each operand, with PyTorch's broadcasting, type
// promotion and autograd formulas. Results keep the order of dimensions of their first operand.
#pragma once

#include <initializer_list>
#include <span>

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// A cast that keeps the layout; saves nothing, its backward casts the gradient back.
Tensor to(Eager& eager, const Tensor& x, DType type);

/// a + b; saves nothing.
Tensor add(Eager& eager, const Tensor& a, const Tensor& b);
/// a += b, without autograd (gradients).
void add_in_place(Eager& eager, const Tensor& a, const Tensor& b);
/// a * b; saves both.
Tensor mul(Eager& eager, const Tensor& a, const Tensor& b);
/// x of fp32, seen as complex numbers, times one of them a position and pair of a head.
Tensor complex_mul(Eager& eager, const Tensor& x, const Tensor& turns);
/// x times, over, plus or to the power of a number known to the host; scale, divide and add save nothing.
Tensor scale(Eager& eager, const Tensor& x);
Tensor divide(Eager& eager, const Tensor& x);
Tensor add_number(Eager& eager, const Tensor& x);
/// -x.
Tensor negate(Eager& eager, const Tensor& x);
/// x²; saves x; backward is 2x · gradient: a copy and two kernels.
Tensor square(Eager& eager, const Tensor& x);
/// 1/√x; saves the result; backward is -½ · gradient · result³ in three kernels.
Tensor rsqrt(Eager& eager, const Tensor& x);

/// Activations save their input (tanh and relu their result). `gelu_spelled_out` is x * 0.5 * (1 + erf(x / 1.41)) in
/// five operations, which save three tensors and run nine in the backward pass.
enum class ActivationKind : std::uint8_t { gelu, gelu_tanh, silu, tanh, relu, gelu_spelled_out };
Tensor activation(Eager& eager, const Tensor& x, ActivationKind kind);

/// x with -inf where the mask is set: a copy, then a kernel in place; saves the mask.
Tensor masked_fill(Eager& eager, const Tensor& x, const Tensor& mask);
/// A number of either kind kept in range; no gradient.
Tensor clamp(Eager& eager, const Tensor& x);
/// x == number, as booleans; no gradient.
Tensor equal_number(Eager& eager, const Tensor& x);

/// Fresh tensors filled by a kernel.
Tensor full(Eager& eager, const Dims& sizes, DType type);
Tensor arange(Eager& eager, std::int64_t count, DType type);

/// An operation without autograd: `inputs` to `output`, one kernel.
void pointwise(Eager& eager, PointwiseFunction function, std::span<const Tensor* const> inputs, const Tensor& output);
inline void pointwise(Eager& eager, PointwiseFunction function, std::initializer_list<const Tensor*> inputs,
                      const Tensor& output) {
  pointwise(eager, function, std::span(inputs.begin(), inputs.size()), output);
}

}  // namespace ridgeline::eager::aten

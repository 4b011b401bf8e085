#include "sim/workload/aten/pointwise.h"

#include <algorithm>

#include "sim/workload/aten/formula.h"
#include "sim/workload/eager/function_node.h"

namespace ridgeline::eager::aten {
namespace {

/// How operands lie relative to the result; sets rows and columns for a repeated operand.
Walk walk_of(std::span<const Tensor* const> inputs, const Tensor& output, Pointwise& op) {
  Walk walk = Walk::contiguous;
  const std::int64_t elements = output.elements();
  for (const Tensor* input : inputs) {
    if (input->elements() < elements) {
      int matching = 0;  // dimensions from the innermost on that both have
      const int rank = input->sizes.rank();
      while (matching < rank && input->sizes.last(matching) == output.sizes.last(matching)) ++matching;
      bool row = rank > 0;  // what does not match may only be repeated
      for (int i = matching; i < rank; ++i) row = row && input->sizes.last(i) == 1;
      if (row && input->contiguous() && output.contiguous()) {
        op.cols = input->elements();
        op.rows = elements / std::max<std::int64_t>(op.cols, 1);
        if (walk == Walk::contiguous) walk = Walk::broadcast_row;
      } else if (walk != Walk::strided) {
        walk = Walk::broadcast;
      }
    } else if (!(input->contiguous() && output.contiguous()) && !(input->strides == output.strides && output.dense())) {
      walk = Walk::strided;
    }
  }
  return walk;
}

/// Complex numbers of two fp32 have the bytes of an int64.
void turn(Eager& eager, const Tensor& x, const Tensor& turns, const Tensor& result) {
  const std::int64_t cols = x.sizes.last() / 2;
  eager.recorder.op(Pointwise{.function = PointwiseFunction::complex_mul,
                              .rows = x.elements() / x.sizes.last(),
                              .cols = cols,
                              .inputs = {DType::int64, DType::int64, DType::int64},
                              .input_count = 2,
                              .output = DType::int64,
                              .walk = Walk::broadcast},
                    {&x, &turns}, {&result});
}

}  // namespace

void pointwise(Eager& eager, PointwiseFunction function, std::span<const Tensor* const> inputs, const Tensor& output) {
  Pointwise op;
  op.function = function;
  op.cols = output.sizes.rank() > 0 ? output.sizes.last() : 1;
  op.rows = output.elements() / std::max<std::int64_t>(op.cols, 1);
  op.output = output.type;
  op.input_count = 0;
  for (DType& type : op.inputs) type = output.type;
  for (const Tensor* input : inputs) op.inputs[op.input_count++] = input->type;
  op.walk = walk_of(inputs, output, op);
  const Tensor* const outputs[]{&output};
  eager.recorder.op(op, inputs, outputs);
}

Tensor to(Eager& eager, const Tensor& x, DType type) {
  if (x.type == type) return x;
  Node* const node = node_for(eager, {&x}, HostClass::cast_backward,
                              [from = x.type](auto& pass) { pass.out[0] = to(pass.eager, pass.in[0], from); });
  Tensor result = eager.empty_like(x, type);
  pointwise(eager, PointwiseFunction::cast, {&x}, result);
  attach(result, node);
  return result;
}

void add_in_place(Eager& eager, const Tensor& a, const Tensor& b) {
  pointwise(eager, PointwiseFunction::add_in_place, {&a, &b}, a);
}

Tensor complex_mul(Eager& eager, const Tensor& x, const Tensor& turns) {
  auto* const node = node_for<1>(eager, {&x}, HostClass::pointwise_backward, [](auto& pass) {
    pass.out[0] = pass.eager.empty_like(pass.in[0]);
    turn(pass.eager, pass.in[0], pass.saved[0], pass.out[0]);
  });
  if (node != nullptr) node->saved[0] = eager.save(turns);
  Tensor result = eager.empty_like(x);
  turn(eager, x, turns, result);
  attach(result, node);
  return result;
}

Tensor add(Eager& eager, const Tensor& a, const Tensor& b) { return apply(eager, PointwiseFunction::add, a, &b); }
Tensor mul(Eager& eager, const Tensor& a, const Tensor& b) { return apply(eager, PointwiseFunction::mul, a, &b); }
Tensor scale(Eager& eager, const Tensor& x) { return apply(eager, PointwiseFunction::scale, x); }
Tensor divide(Eager& eager, const Tensor& x) { return apply(eager, PointwiseFunction::divide, x); }
Tensor negate(Eager& eager, const Tensor& x) { return apply(eager, PointwiseFunction::scale, x); }
Tensor add_number(Eager& eager, const Tensor& x) { return apply(eager, PointwiseFunction::add, x); }
Tensor square(Eager& eager, const Tensor& x) { return apply(eager, PointwiseFunction::pow2, x); }
Tensor rsqrt(Eager& eager, const Tensor& x) { return apply(eager, PointwiseFunction::square_root, x); }
Tensor masked_fill(Eager& eager, const Tensor& x, const Tensor& mask) {
  return apply(eager, PointwiseFunction::masked_fill, x, &mask);
}

Tensor activation(Eager& eager, const Tensor& x, ActivationKind kind) {
  using F = PointwiseFunction;
  constexpr F kFunctions[] = {F::gelu, F::gelu_tanh, F::silu, F::tanh, F::relu};
  if (kind != ActivationKind::gelu_spelled_out) return apply(eager, kFunctions[static_cast<std::size_t>(kind)], x);
  // 2 / sqrt(pi) * exp(-x²) * gradient, one kernel an operation.
  static const Derivative kOfErrorFunction("mul(grad, scale(other(scale(pow2(self)))))");
  const Tensor half = scale(eager, x);
  const Tensor sum = add_number(eager, apply(eager, F::other, kOfErrorFunction, divide(eager, x)));
  return mul(eager, half, sum);
}

Tensor clamp(Eager& eager, const Tensor& x) {
  Tensor result = eager.empty_like(x);
  pointwise(eager, PointwiseFunction::clamp, {&x}, result);
  return result;
}

Tensor equal_number(Eager& eager, const Tensor& x) {
  Tensor result = eager.empty_like(x, DType::boolean);
  pointwise(eager, PointwiseFunction::equal, {&x}, result);
  return result;
}

Tensor full(Eager& eager, const Dims& sizes, DType type) {
  Tensor result = eager.empty(sizes, type);
  pointwise(eager, PointwiseFunction::fill, {}, result);
  return result;
}

Tensor arange(Eager& eager, std::int64_t count, DType type) {
  Tensor result = eager.empty({count}, type);
  pointwise(eager, PointwiseFunction::arange, {}, result);
  return result;
}

}  // namespace ridgeline::eager::aten

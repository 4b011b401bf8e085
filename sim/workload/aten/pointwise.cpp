#include "sim/workload/aten/pointwise.h"

#include <algorithm>
#include <vector>

#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

Dims broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.rank() >= b.rank() ? a : b;
  const Dims& shorter = a.rank() >= b.rank() ? b : a;
  Dims result = longer;
  for (int i = 0; i < shorter.rank(); ++i) {
    auto& size = result[longer.rank() - 1 - i];
    size = std::max(size, shorter.last(i));
  }
  return result;
}

/// fp32 wins over 16 bits, as a mixed kernel promotes.
DType promote(DType a, DType b) { return bytes_of(a) >= bytes_of(b) ? a : b; }

/// How operands lie relative to the result; sets rows and columns for a repeated operand.
Walk walk_of(std::initializer_list<const Tensor*> inputs, const Tensor& output, Pointwise& op) {
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

struct ToBackward final : Node {
  ToBackward() : Node(HostClass::cast_backward) {}
  DType type = DType::fp32;
  void backward(Eager& eager, Gradients& in, Gradients& out) override { out[0] = to(eager, in[0], type); }
};

struct AddBackward final : Node {
  AddBackward() : Node(HostClass::add_backward) {}
  void backward(Eager&, Gradients& in, Gradients& out) override {
    for (int i = 0; i < edge_count; ++i)
      if (needs(i)) out[static_cast<std::size_t>(i)] = in[0];
  }
};

struct MulBackward final : Node {
  MulBackward() : Node(HostClass::pointwise_backward) {}
  SavedTensor other, self;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor b = other.unpack(eager), a = self.unpack(eager);
    if (needs(1)) out[1] = mul(eager, in[0], a);
    if (needs(0)) out[0] = mul(eager, in[0], b);
  }
  void release() override {
    other.release();
    self.release();
  }
};

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

struct ComplexMulBackward final : Node {
  ComplexMulBackward() : Node(HostClass::pointwise_backward) {}
  SavedTensor turns;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor by = turns.unpack(eager);
    out[0] = eager.empty_like(in[0]);
    turn(eager, in[0], by, out[0]);
  }
  void release() override { turns.release(); }
};

/// Of x times (or over) a number: the same on the gradient.
struct NumberBackward final : Node {
  explicit NumberBackward(PointwiseFunction f) : Node(HostClass::pointwise_backward), function(f) {}
  PointwiseFunction function;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    out[0] = eager.empty_like(in[0]);
    pointwise(eager, function, {&in[0]}, out[0]);
  }
};

struct SquareBackward final : Node {
  SquareBackward() : Node(HostClass::pointwise_backward) {}
  SavedTensor self;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor x = self.unpack(eager);
    const Tensor power = eager.empty_like(x);  // x to the power of 1 is a copy
    eager.recorder.op(Copy{CopyKind::contiguous, x.type, 1, x.elements(), 1}, {&x}, {&power});
    const Tensor doubled = scale(eager, power);
    out[0] = mul(eager, in[0], doubled);
  }
  void release() override { self.release(); }
};

struct RsqrtBackward final : Node {
  RsqrtBackward() : Node(HostClass::pointwise_backward) {}
  SavedTensor result;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor y = result.unpack(eager);
    const Tensor cube = square(eager, y);
    const Tensor half = scale(eager, in[0]);
    out[0] = mul(eager, half, cube);
  }
  void release() override { result.release(); }
};

struct ActivationBackward final : Node {
  explicit ActivationBackward(PointwiseFunction f) : Node(HostClass::pointwise_backward), function(f) {}
  PointwiseFunction function;
  SavedTensor saved;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor x = saved.unpack(eager);
    out[0] = eager.empty_like(in[0]);
    pointwise(eager, function, {&in[0], &x}, out[0]);
  }
  void release() override { saved.release(); }
};

/// 2 / sqrt(pi) * exp(-x²) * gradient, one kernel an operation.
struct ErrorFunctionBackward final : Node {
  ErrorFunctionBackward() : Node(HostClass::pointwise_backward) {}
  SavedTensor self;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor x = self.unpack(eager);
    std::vector<Tensor> steps{square(eager, x)};  // of one expression: all live until it ends
    for (const PointwiseFunction f : {PointwiseFunction::scale, PointwiseFunction::other, PointwiseFunction::scale}) {
      Tensor next = eager.empty_like(x);  // minus, exp, times 2 / sqrt(pi)
      pointwise(eager, f, {&steps.back()}, next);
      steps.push_back(std::move(next));
    }
    out[0] = mul(eager, in[0], steps.back());
  }
  void release() override { self.release(); }
};

Tensor error_function(Eager& eager, const Tensor& x) {
  ErrorFunctionBackward* node = nullptr;
  if (eager.needs_node({&x})) {
    node = &eager.node<ErrorFunctionBackward>({&x});
    node->self = eager.save(x);
  }
  Tensor result = eager.empty_like(x);
  pointwise(eager, PointwiseFunction::other, {&x}, result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

struct MaskedFillBackward final : Node {
  MaskedFillBackward() : Node(HostClass::masked_fill_backward) {}
  SavedTensor mask;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor places = mask.unpack(eager);
    out[0] = masked_fill(eager, in[0], places);
  }
  void release() override { mask.release(); }
};

Tensor with_number(Eager& eager, const Tensor& x, PointwiseFunction function, PointwiseFunction backward) {
  NumberBackward* node = eager.needs_node({&x}) ? &eager.node<NumberBackward>({&x}, backward) : nullptr;
  Tensor result = eager.empty_like(x);
  pointwise(eager, function, {&x}, result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

}  // namespace

void pointwise(Eager& eager, PointwiseFunction function, std::initializer_list<const Tensor*> inputs,
               const Tensor& output) {
  Pointwise op;
  op.function = function;
  op.cols = output.sizes.rank() > 0 ? output.sizes.last() : 1;
  op.rows = output.elements() / std::max<std::int64_t>(op.cols, 1);
  op.output = output.type;
  op.input_count = 0;
  for (DType& type : op.inputs) type = output.type;
  for (const Tensor* input : inputs) op.inputs[op.input_count++] = input->type;
  op.walk = walk_of(inputs, output, op);
  eager.recorder.op(op, inputs, {&output});
}

Tensor to(Eager& eager, const Tensor& x, DType type) {
  if (x.type == type) return x;
  ToBackward* node = eager.needs_node({&x}) ? &eager.node<ToBackward>({&x}) : nullptr;
  Tensor result = eager.empty_like(x, type);
  pointwise(eager, PointwiseFunction::cast, {&x}, result);
  if (node != nullptr) {
    node->type = x.type;
    Eager::attach(result, *node);
  }
  return result;
}

Tensor add(Eager& eager, const Tensor& a, const Tensor& b) {
  AddBackward* node = eager.needs_node({&a, &b}) ? &eager.node<AddBackward>({&a, &b}) : nullptr;
  const Dims sizes = broadcast(a.sizes, b.sizes);
  const Tensor& like = a.sizes == sizes ? a : b;
  Tensor result = like.sizes == sizes ? eager.empty_like(like, promote(a.type, b.type))
                                      : eager.empty(sizes, promote(a.type, b.type));
  pointwise(eager, PointwiseFunction::add, {&a, &b}, result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

void add_in_place(Eager& eager, const Tensor& a, const Tensor& b) {
  pointwise(eager, PointwiseFunction::add_in_place, {&a, &b}, a);
}

Tensor mul(Eager& eager, const Tensor& a, const Tensor& b) {
  MulBackward* node = nullptr;
  if (eager.needs_node({&a, &b})) {
    node = &eager.node<MulBackward>({&a, &b});
    if (node->needs(0)) node->other = eager.save(b);
    if (node->needs(1)) node->self = eager.save(a);
  }
  const Dims sizes = broadcast(a.sizes, b.sizes);
  const Tensor& like = a.sizes == sizes ? a : b;
  Tensor result = like.sizes == sizes ? eager.empty_like(like, promote(a.type, b.type))
                                      : eager.empty(sizes, promote(a.type, b.type));
  pointwise(eager, PointwiseFunction::mul, {&a, &b}, result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor complex_mul(Eager& eager, const Tensor& x, const Tensor& turns) {
  ComplexMulBackward* node = eager.needs_node({&x}) ? &eager.node<ComplexMulBackward>({&x}) : nullptr;
  if (node != nullptr) node->turns = eager.save(turns);
  Tensor result = eager.empty_like(x);
  turn(eager, x, turns, result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor scale(Eager& eager, const Tensor& x) {
  return with_number(eager, x, PointwiseFunction::scale, PointwiseFunction::scale);
}
Tensor divide(Eager& eager, const Tensor& x) {
  return with_number(eager, x, PointwiseFunction::divide, PointwiseFunction::divide);
}
Tensor negate(Eager& eager, const Tensor& x) {
  return with_number(eager, x, PointwiseFunction::scale, PointwiseFunction::scale);
}

Tensor add_number(Eager& eager, const Tensor& x) {
  AddBackward* node = eager.needs_node({&x}) ? &eager.node<AddBackward>({&x}) : nullptr;
  Tensor result = eager.empty_like(x);
  pointwise(eager, PointwiseFunction::add, {&x}, result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor square(Eager& eager, const Tensor& x) {
  SquareBackward* node = nullptr;
  if (eager.needs_node({&x})) {
    node = &eager.node<SquareBackward>({&x});
    node->self = eager.save(x);
  }
  Tensor result = eager.empty_like(x);
  pointwise(eager, PointwiseFunction::pow2, {&x}, result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor rsqrt(Eager& eager, const Tensor& x) {
  RsqrtBackward* node = eager.needs_node({&x}) ? &eager.node<RsqrtBackward>({&x}) : nullptr;
  Tensor result = eager.empty_like(x);
  pointwise(eager, PointwiseFunction::square_root, {&x}, result);
  if (node != nullptr) {
    node->result = eager.save(result);
    Eager::attach(result, *node);
  }
  return result;
}

namespace {

Tensor gelu_spelled_out(Eager& eager, const Tensor& x) {
  const Tensor half = scale(eager, x);
  const Tensor sum = add_number(eager, error_function(eager, divide(eager, x)));
  return mul(eager, half, sum);
}

}  // namespace

Tensor activation(Eager& eager, const Tensor& x, ActivationKind kind) {
  if (kind == ActivationKind::gelu_spelled_out) return gelu_spelled_out(eager, x);
  struct Functions {
    PointwiseFunction forward, backward;
    bool saves_result;
  };
  using F = PointwiseFunction;
  constexpr Functions kFunctions[] = {{F::gelu, F::gelu_backward, false},
                                      {F::gelu_tanh, F::gelu_tanh_backward, false},
                                      {F::silu, F::silu_backward, false},
                                      {F::tanh, F::tanh_backward, true},
                                      {F::relu, F::relu_backward, true}};
  const Functions& functions = kFunctions[static_cast<std::size_t>(kind)];
  ActivationBackward* node = nullptr;
  if (eager.needs_node({&x})) {
    node = &eager.node<ActivationBackward>({&x}, functions.backward);
    if (!functions.saves_result) node->saved = eager.save(x);
  }
  Tensor result = eager.empty_like(x);
  pointwise(eager, functions.forward, {&x}, result);
  if (node != nullptr) {
    if (functions.saves_result) node->saved = eager.save(result);
    Eager::attach(result, *node);
  }
  return result;
}

Tensor masked_fill(Eager& eager, const Tensor& x, const Tensor& mask) {
  MaskedFillBackward* node = nullptr;
  if (eager.needs_node({&x})) {
    node = &eager.node<MaskedFillBackward>({&x});
    node->mask = eager.save(mask);
  }
  Tensor result = eager.empty(x.sizes, x.type);
  pointwise(eager, PointwiseFunction::masked_fill, {&x, &mask}, result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
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

#include "sim/workload/aten/written_out.h"

#include <string_view>

#include "sim/workload/aten/formula.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

/// Kernels one after another on tensors like `x`, each on one tensor (u) or on two (b).
Tensor chain(Eager& eager, const Tensor& x, std::string_view kernels) {
  Tensor y = x;
  for (const char kernel : kernels) {
    Tensor next = eager.empty_like(x);
    if (kernel == 'u') pointwise(eager, PointwiseFunction::scale, {&y}, next);
    else pointwise(eager, PointwiseFunction::mul, {&y, &x}, next);
    y = std::move(next);
  }
  return y;
}

struct BloomGeluBackward final : Node {
  BloomGeluBackward() : Node(HostClass::pointwise_backward) {}
  SavedTensor self;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor x = self.unpack(eager);
    const Tensor slope = chain(eager, x, "uububuubuububbuub");
    out[0] = mul(eager, slope, in[0]);
  }
  void release() override { self.release(); }
};

/// where(x == number, gradient / 2, gradient), with zeros where x < number.
struct AtLeastBackward final : Node {
  AtLeastBackward() : Node(HostClass::pointwise_backward) {}
  SavedTensor other, self;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor number = other.unpack(eager), x = self.unpack(eager);
    {
      const Tensor half = divide(eager, in[0]);
      const Tensor equal = plain(eager, PointwiseFunction::equal, x.sizes, DType::boolean, {&x, &number});
      out[0] = plain(eager, PointwiseFunction::other, x.sizes, in[0].type, {&equal, &half, &in[0]});
    }
    const Tensor below = plain(eager, PointwiseFunction::equal, x.sizes, DType::boolean, {&x, &number});
    pointwise(eager, PointwiseFunction::other, {&out[0], &below}, out[0]);  // filled in place
  }
  void release() override {
    other.release();
    self.release();
  }
};

struct AddedToBackward final : Node {
  AddedToBackward() : Node(HostClass::add_backward) {}
  void backward(Eager&, Gradients& in, Gradients& out) override {
    for (int i = 0; i < edge_count; ++i)
      if (needs(i)) out[static_cast<std::size_t>(i)] = in[0];
  }
};

}  // namespace

Tensor divide_by(Eager& eager, const Tensor& x, const Tensor& d) {
  return apply(eager, PointwiseFunction::divide, x, &d);
}

Tensor added_to(Eager& eager, Tensor x, const Tensor& b) {
  AddedToBackward* node = eager.needs_node({&x, &b}) ? &eager.node<AddedToBackward>({&x, &b}) : nullptr;
  pointwise(eager, PointwiseFunction::add_in_place, {&x, &b}, x);
  if (node != nullptr) Eager::attach(x, *node);
  return x;
}

Tensor at_least(Eager& eager, const Tensor& x, const Tensor& number) {
  AtLeastBackward* node = eager.needs_node({&x}) ? &eager.node<AtLeastBackward>({&x}) : nullptr;
  if (node != nullptr) {
    node->other = eager.save(number);
    node->self = eager.save(x);
  }
  Tensor result = eager.empty_like(x);
  pointwise(eager, PointwiseFunction::other, {&x, &number}, result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor cube(Eager& eager, const Tensor& x) {
  static const Derivative kCube("mul(grad, scale(pow2(self)))");
  return apply(eager, PointwiseFunction::pow2, kCube, eager.autocast.on() ? to(eager, x, DType::fp32) : x);
}

// A sigmoid's kernels are as long as those of tanh.
Tensor sigmoid(Eager& eager, const Tensor& x) { return apply(eager, PointwiseFunction::tanh, x); }

Tensor gelu_written_out(Eager& eager, const Tensor& x) {
  const Tensor half = scale(eager, x);
  Tensor inside = scale(eager, cube(eager, x));
  inside = add(eager, x, inside);
  inside = scale(eager, inside);
  inside = activation(eager, inside, ActivationKind::tanh);
  const Tensor sum = add_number(eager, inside);
  inside = Tensor{};
  return mul(eager, half, sum);
}

Tensor bloom_gelu(Eager& eager, const Tensor& x) {
  BloomGeluBackward* node = eager.needs_node({&x}) ? &eager.node<BloomGeluBackward>({&x}) : nullptr;
  if (node != nullptr) node->self = eager.save(x);
  Tensor result = chain(eager, x.detached(), "uuububuub");
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor quick_gelu(Eager& eager, const Tensor& x) {
  const Tensor gate = sigmoid(eager, scale(eager, x));
  return mul(eager, x, gate);
}

// A square is a power, which autocast computes in fp32.
Tensor relu_squared(Eager& eager, const Tensor& x) {
  const Tensor positive = activation(eager, x, ActivationKind::relu);
  return square(eager, eager.autocast.on() ? to(eager, positive, DType::fp32) : positive);
}

Tensor soft_cap(Eager& eager, const Tensor& x) {
  Tensor capped = divide(eager, x);
  capped = activation(eager, capped, ActivationKind::tanh);
  return scale(eager, capped);
}

Tensor plain(Eager& eager, PointwiseFunction function, const Dims& sizes, DType type,
             std::initializer_list<const Tensor*> inputs) {
  Tensor result = eager.empty(sizes, type);
  pointwise(eager, function, inputs, result);
  return result;
}

}  // namespace ridgeline::eager::aten

#include "sim/workload/aten/written_out.h"

#include <string_view>

#include "sim/workload/aten/formula.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/eager/function_node.h"

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

/// where(x == number, gradient / 2, gradient), with zeros where x < number.
void part_at(Eager& eager, const Tensor& gradient, const Tensor& x, const Tensor& number, Tensor& into) {
  {
    const Tensor half = divide(eager, gradient);
    const Tensor equal = plain(eager, PointwiseFunction::equal, x.sizes, DType::boolean, {&x, &number});
    into = plain(eager, PointwiseFunction::other, x.sizes, gradient.type, {&equal, &half, &gradient});
  }
  const Tensor below = plain(eager, PointwiseFunction::equal, x.sizes, DType::boolean, {&x, &number});
  pointwise(eager, PointwiseFunction::other, {&into, &below}, into);  // filled in place
}

}  // namespace

Tensor divide_by(Eager& eager, const Tensor& x, const Tensor& d) {
  return apply(eager, PointwiseFunction::divide, x, &d);
}

Tensor added_to(Eager& eager, Tensor x, const Tensor& b) {
  Node* const node = node_for(eager, {&x, &b}, HostClass::add_backward, kPassOn);
  pointwise(eager, PointwiseFunction::add_in_place, {&x, &b}, x);
  attach(x, node);
  return x;
}

Tensor at_least(Eager& eager, const Tensor& x, const Tensor& number) {
  auto* const node = node_for<2>(eager, {&x}, HostClass::pointwise_backward, [](auto& pass) {
    part_at(pass.eager, pass.in[0], pass.saved[1], pass.saved[0], pass.out[0]);
  });
  if (node != nullptr) {
    node->saved[0] = eager.save(number);
    node->saved[1] = eager.save(x);
  }
  Tensor result = eager.empty_like(x);
  pointwise(eager, PointwiseFunction::other, {&x, &number}, result);
  attach(result, node);
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
  auto* const node = node_for<1>(eager, {&x}, HostClass::pointwise_backward, [](auto& pass) {
    const Tensor slope = chain(pass.eager, pass.saved[0], "uububuubuububbuub");
    pass.out[0] = mul(pass.eager, slope, pass.in[0]);
  });
  if (node != nullptr) node->saved[0] = eager.save(x);
  Tensor result = chain(eager, x.detached(), "uuububuub");
  attach(result, node);
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

Tensor clamp(Eager& eager, const Tensor& x, bool both) {
  using F = PointwiseFunction;
  auto* const node = node_for<1>(eager, {&x}, HostClass::pointwise_backward, [both](auto& pass) {
    const Tensor& given = pass.saved[0];
    Tensor inside = plain(pass.eager, F::equal, given.sizes, DType::boolean, {&given});
    if (both) {
      const Tensor below = plain(pass.eager, F::equal, given.sizes, DType::boolean, {&given});
      inside = plain(pass.eager, F::equal, given.sizes, DType::boolean, {&inside, &below});
    }
    pass.out[0] = plain(pass.eager, F::other, given.sizes, pass.in[0].type, {&inside, &pass.in[0]});
  });
  if (node != nullptr) node->saved[0] = eager.save(x);
  Tensor result = eager.empty_like(x);
  pointwise(eager, F::clamp, {&x}, result);
  attach(result, node);
  return result;
}

Tensor plain(Eager& eager, PointwiseFunction function, const Dims& sizes, DType type,
             std::initializer_list<const Tensor*> inputs) {
  Tensor result = eager.empty(sizes, type);
  pointwise(eager, function, inputs, result);
  return result;
}

}  // namespace ridgeline::eager::aten

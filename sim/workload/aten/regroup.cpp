#include "sim/workload/aten/regroup.h"

#include "sim/units/ceil_div.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/eager/function_node.h"

namespace ridgeline::eager::aten {
namespace {

Tensor clone(Eager& eager, const Tensor& x) {
  const Tensor result = eager.empty(x.sizes, x.type);
  const std::int64_t cols = x.sizes.last();
  eager.recorder.op(Copy{x.contiguous() ? CopyKind::contiguous : CopyKind::permute, x.type,
                         x.contiguous() ? 1 : x.elements() / cols, x.contiguous() ? x.elements() : cols, 1},
                    {&x}, {&result});
  return result;
}

/// The gradient is copied as the tensor was.
constexpr auto kCloneGradient = [](auto& pass) { pass.out[0] = clone(pass.eager, pass.in[0]); };

Tensor roll_twice(Eager& eager, const Tensor& x) {
  const Tensor once = eager.empty(x.sizes, x.type);
  pointwise(eager, PointwiseFunction::roll, {&x}, once);
  Tensor result = eager.empty(x.sizes, x.type);
  pointwise(eager, PointwiseFunction::roll, {&once}, result);
  return result;
}

/// Each part goes back through two slices, columns before rows, into zeros of the whole; the parts are added up.
void part_neighbours(Eager& eager, const Tensor& gradient, const Dims& sizes, Tensor& into) {
  const Dims half{sizes[0], sizes[1] / 2, sizes[2], sizes[3]};
  const std::int64_t rows = sizes.product() / sizes[3] / 4;
  for (int part = 0; part < 4; ++part) {
    const Tensor columns = full(eager, half, gradient.type);
    eager.recorder.op(Copy{CopyKind::permute, gradient.type, rows, sizes[3], 1}, {&gradient}, {&columns});
    const Tensor whole = full(eager, sizes, gradient.type);
    eager.recorder.op(Copy{CopyKind::permute, gradient.type, 2 * rows, sizes[3], 1}, {&columns}, {&whole});
    if (part == 0) into = whole;
    else add_in_place(eager, into, whole);
  }
  into = view(eager, into, {sizes[0], sizes[1] * sizes[2], sizes[3]});
}

}  // namespace

Tensor copied(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::contiguous);
  Tensor result = clone(eager, x);
  attach(result, node_for(eager, {&x}, HostClass::pointwise_backward, kCloneGradient));
  return result;
}

Tensor rolled(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::pointwise, 2);
  Tensor result = roll_twice(eager, x);
  attach(result, node_for(eager, {&x}, HostClass::pointwise_backward,
                          [](auto& pass) { pass.out[0] = roll_twice(pass.eager, pass.in[0]); }));
  return result;
}

Tensor repeated_first(Eager& eager, const Tensor& x, std::int64_t times) {
  Tensor result = eager.empty({x.sizes[0] * times, x.sizes[1], x.sizes[2]}, x.type);
  eager.recorder.op(Copy{CopyKind::permute, x.type, result.elements() / x.sizes[2], x.sizes[2], 1}, {&x}, {&result});
  attach(result, node_for(eager, {&x}, HostClass::pointwise_backward, [sizes = x.sizes](auto& pass) {
           pass.out[0] = pass.eager.empty(sizes, pass.in[0].type);
           const std::int64_t cols = sizes.product();
           const Tensor gradient = contiguous(pass.eager, pass.in[0]);
           pass.eager.recorder.op(
               Reduction{ReductionKind::sum_rows, pass.in[0].type, pass.in[0].elements() / cols, cols}, {&gradient},
               {&pass.out[0]});
         }));
  return result;
}

Tensor gathered_last(Eager& eager, const Tensor& x, const Tensor& index, const Dims& sizes) {
  // The whole operand is kept for its sizes.
  auto* const node = node_for<2>(eager, {&x}, HostClass::pointwise_backward, [whole = x.sizes](auto& pass) {
    pass.out[0] = full(pass.eager, whole, pass.in[0].type);
    Tensor reached = pass.out[0];  // an element for each index
    reached.sizes = pass.in[0].sizes;
    pointwise(pass.eager, PointwiseFunction::scatter_add, {&pass.saved[0], &pass.in[0]}, reached);
  });
  if (node != nullptr) {
    node->saved[0] = eager.save(index);
    node->saved[1] = eager.save(x);
  }
  Tensor result = eager.empty(sizes, x.type);
  pointwise(eager, PointwiseFunction::gather, {&index, &x}, result);
  attach(result, node);
  return result;
}

Tensor aligned_rows(Eager& eager, const Tensor& x, std::int64_t count) {
  const std::int64_t cols = x.sizes.last(), wide = ceil_div(cols, count) * count;
  if (wide == cols) return x;
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] = wide;
  Tensor padded = full(eager, sizes, x.type);
  eager.recorder.op(Copy{CopyKind::permute, x.type, x.elements() / cols, cols, 1}, {&x}, {&padded});
  Tensor result = padded;
  attach(result, node_for(eager, {&x}, HostClass::pointwise_backward, kCloneGradient));
  return slice_last(eager, result, cols);
}

Tensor neighbours_joined(Eager& eager, const Tensor& x, std::int64_t side) {
  const std::int64_t batch = x.sizes[0], width = x.sizes[2], patches = side * side / 4;
  Tensor result = eager.empty({batch, patches, 4 * width}, x.type);
  eager.recorder.op(Copy{CopyKind::permute, x.type, 4 * batch * patches, width, 1}, {&x}, {&result});
  const Dims sizes{batch, side, side, width};
  attach(result, node_for(eager, {&x}, HostClass::pointwise_backward,
                          [sizes](auto& pass) { part_neighbours(pass.eager, pass.in[0], sizes, pass.out[0]); }));
  return result;
}

}  // namespace ridgeline::eager::aten

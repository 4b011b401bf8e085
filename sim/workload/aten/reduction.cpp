#include "sim/workload/aten/reduction.h"

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/eager/function_node.h"

namespace ridgeline::eager::aten {
namespace {

/// The gradient of a mean is spread over what was averaged: an expanded view, divided.
Node* mean_node(Eager& eager, const Tensor& x) {
  return node_for(eager, {&x}, HostClass::pointwise_backward, [sizes = x.sizes](auto& pass) {
    const Tensor spread = expand(pass.eager, pass.in[0], sizes);
    pass.out[0] = pass.eager.empty(sizes, pass.in[0].type);
    pointwise(pass.eager, PointwiseFunction::divide, {&spread}, pass.out[0]);
  });
}

}  // namespace

Tensor sum_to(Eager& eager, const Tensor& x, const Dims& sizes) {
  // Leading dimensions (and stretched ones) are added up; what remains inside stays a row.
  const int extra = x.sizes.rank() - sizes.rank();
  Dims kept = x.sizes;
  int innermost_summed = -1;
  for (int i = 0; i < x.sizes.rank(); ++i) {
    if (i < extra || (sizes[i - extra] == 1 && x.sizes[i] != 1)) {
      kept[i] = 1;
      innermost_summed = i;
    }
  }
  Tensor result = eager.empty(kept, x.type);
  const std::int64_t cols = result.elements(), rows = x.elements() / cols;
  const bool rows_summed = innermost_summed < x.sizes.rank() - 1;
  const ReductionKind kind = cols == 1     ? ReductionKind::sum_all
                             : rows_summed ? ReductionKind::sum_rows
                                           : ReductionKind::sum_cols;
  Reduction op{kind, x.type, rows, cols};
  if (kind == ReductionKind::sum_all) op = {kind, x.type, 1, rows};
  if (kind == ReductionKind::sum_cols) op = {kind, x.type, cols, rows};
  eager.recorder.op(op, {&x}, {&result});
  return extra > 0 ? view(eager, result, sizes) : result;
}

Tensor mean_last(Eager& eager, const Tensor& x) {
  Node* const node = mean_node(eager, x);
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] = 1;
  Tensor result = eager.empty(sizes, x.type);
  eager.recorder.op(Reduction{ReductionKind::mean_cols, x.type, result.elements(), x.sizes.last()}, {&x}, {&result});
  attach(result, node);
  return result;
}

Tensor less_largest(Eager& eager, const Tensor& x) {
  using F = PointwiseFunction;
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] = 1;
  const Tensor largest = eager.empty(sizes, x.type), place = eager.empty(sizes, DType::int64);
  eager.recorder.op(Reduction{ReductionKind::sum_cols, x.type, largest.elements(), x.sizes.last(), Accumulator::place},
                    {&x}, {&largest});
  auto* const node = node_for<1>(eager, {&x}, HostClass::pointwise_backward, [whole = x.sizes, sizes](auto& pass) {
    Eager& session = pass.eager;
    const Tensor& gradient = pass.in[0];
    Tensor negative = session.empty(whole, gradient.type);
    pointwise(session, F::scale, {&gradient}, negative);
    const Tensor sum = sum_to(session, negative, sizes);
    negative = Tensor{};
    const Tensor scattered = full(session, whole, gradient.type);
    // The index is no operand: nothing in a trace writes it.
    session.recorder.op(Pointwise{F::scatter_add, sum.elements(), 1, {gradient.type}, 1, gradient.type}, {&sum},
                        {&scattered});
    pass.out[0] = session.empty(whole, gradient.type);
    pointwise(session, F::add, {&gradient, &scattered}, pass.out[0]);
  });
  if (node != nullptr) node->saved[0] = eager.save(place);
  Tensor result = eager.empty(x.sizes, x.type);
  pointwise(eager, F::add, {&x, &largest}, result);
  attach(result, node);
  return result;
}

Tensor mean_all(Eager& eager, const Tensor& x) {
  Node* const node = mean_node(eager, x);
  Tensor result = eager.empty({}, x.type);
  eager.recorder.op(Reduction{ReductionKind::sum_all, x.type, 1, x.elements()}, {&x}, {&result});
  attach(result, node);
  return result;
}

Tensor mean_first(Eager& eager, const Tensor& x) {
  Tensor result = eager.empty({1, x.sizes[1]}, x.type);
  if (x.sizes[1] == 1) eager.recorder.op(Reduction{ReductionKind::mean_cols, x.type, 1, x.sizes[0]}, {&x}, {&result});
  else eager.recorder.op(Reduction{ReductionKind::sum_rows, x.type, x.sizes[0], x.sizes[1]}, {&x}, {&result});
  return result;
}

}  // namespace ridgeline::eager::aten

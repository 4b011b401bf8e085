// Calls that the dispatcher shows as one and that run several kernels: distances, cross entropies of two classes,
// diagonals, gated linear units.
#include <algorithm>

#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {
namespace {

using P = PointwiseFunction;

void append_one(std::vector<MappedOp>& ops, P function, std::initializer_list<const AtenTensor*> inputs,
                const AtenTensor& output) {
  ops.push_back(pointwise_op(function, inputs, output));
}
void append_mean(std::vector<MappedOp>& ops, const AtenTensor& x, const AtenTensor& result) {
  ops.push_back({Reduction{ReductionKind::mean_cols, x.type, 1, x.elements()}, {x}, {result}});
}

/// _euclidean_dist(x [..., n, d], y [..., m, d]): |x|² - 2xy + |y|² as one product of d + 2, clamped, its root.
MappedOps euclidean_distance(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *y = call.tensor(1);
  if (x == nullptr || y == nullptr || x->sizes.size() < 2 || y->sizes.size() < 2 || x->elements() < 1 ||
      y->elements() < 1)
    return std::nullopt;
  const std::int64_t d = x->last(), n = x->last(1), m = y->last(1), batch = x->elements() / d / n;
  std::vector<MappedOp> ops;
  for (const AtenTensor* points : {x, y}) {
    const std::int64_t rows = points->elements() / d;
    const AtenTensor squares = fresh(points->type, points->sizes), sums = fresh(points->type, {rows, 1});
    append_one(ops, P::pow2, {points}, squares);
    ops.push_back({Reduction{ReductionKind::sum_cols, points->type, rows, d}, {squares}, {sums}});
    append_one(ops, P::fill, {}, sums);
  }
  append_one(ops, P::scale, {x}, fresh(x->type, x->sizes));
  for (const AtenTensor* points : {x, y}) {
    const std::int64_t rows = points->elements() / d;
    AtenTensor joined = fresh(points->type, {rows, d + 2});  // squares and ones beside the points
    joined.storage = points->storage;
    ops.push_back(
        {Copy{CopyKind::concatenate, points->type, rows, d + 2, 1}, {joined}, {fresh(points->type, {rows, d + 2})}});
  }
  const AtenTensor result = result_of(call, 0, fresh(x->type, {batch, n, m}));
  ops.push_back({Matmul{.type = x->type, .batch = batch, .m = n, .n = m, .k = d + 2, .layout = Layout::nt},
                 {fresh(x->type, {batch, n, d + 2}), fresh(y->type, {batch, m, d + 2})},
                 {result},
                 HostClass::matmul,
                 HostClass::matmul});
  append_one(ops, P::clamp, {&result}, result);
  append_one(ops, P::square_root, {&result}, result);
  return ops;
}

constexpr double kWithoutReduction = 0.0;

/// (x, target, weight, reduction): a loss an element, then their mean.
MappedOps cross_entropy_of_two(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *target = call.tensor(1);
  if (x == nullptr || target == nullptr || x->elements() < 1) return std::nullopt;
  const bool reduces = call.number(3).value_or(1) != kWithoutReduction;
  const AtenTensor losses = reduces ? fresh(x->type, x->sizes) : result_of(call, 0, like(*x));
  std::vector<MappedOp> ops{pointwise_op(P::gelu, {x, target}, losses)};
  if (reduces) append_mean(ops, losses, result_of(call, 0, fresh(x->type, {})));
  return ops;
}
/// (dy, x, target, weight, reduction): dy is expanded and copied, divided by the elements.
MappedOps cross_entropy_of_two_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(0), *x = call.tensor(1), *target = call.tensor(2);
  if (dy == nullptr || x == nullptr || target == nullptr || x->elements() < 1) return std::nullopt;
  const AtenTensor dx = result_of(call, 0, like(*x));
  std::vector<MappedOp> ops{pointwise_op(P::mul, {x, target}, dx)};
  append_one(ops, P::divide, {&dx}, dx);
  return ops;
}
/// (x, target, weight, positive weight, reduction): log(sigmoid(x)), 1 - target, a product and a difference, the mean.
MappedOps cross_entropy_of_scores(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *target = call.tensor(1);
  if (x == nullptr || target == nullptr || x->elements() < 1) return std::nullopt;
  const bool reduces = call.number(4).value_or(1) != kWithoutReduction;
  const AtenTensor each = fresh(x->type, x->sizes), losses = reduces ? each : result_of(call, 0, like(*x));
  std::vector<MappedOp> ops{pointwise_op(P::gelu, {x}, each)};
  append_one(ops, P::fill, {}, fresh(x->type, {}));
  append_one(ops, P::scale, {target}, each);
  append_one(ops, P::mul, {&each, x}, each);
  append_one(ops, P::add, {&each, &each}, losses);
  if (reduces) append_mean(ops, losses, result_of(call, 0, fresh(x->type, {})));
  return ops;
}

/// (x): zeros, then x along the diagonals.
MappedOps on_diagonals(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1 || call.outputs.empty()) return std::nullopt;
  const AtenTensor& whole = call.outputs.front();
  std::vector<MappedOp> ops{pointwise_op(P::fill, {}, whole)};
  AtenTensor places = fresh(x->type, {x->elements(), 1});
  places.storage = whole.storage;
  ops.push_back({Copy{CopyKind::transpose, x->type, x->elements(), 1, 1}, {*x}, {places}});
  return ops;
}

/// (x, dim): half of x times a sigmoid of the other half; and its gradient (dy, x, dim).
template <bool Backward>
MappedOps gated(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(Backward ? 1 : 0);
  if (x == nullptr || x->elements() < 2) return std::nullopt;
  const AtenTensor half = fresh(x->type, {x->elements() / 2});
  if (!Backward) {
    MappedOp op = pointwise_op(P::silu_backward, {&half, &half}, half);
    for (AtenTensor& part : op.inputs) part.storage = x->storage;
    op.outputs.front() = result_of(call, 0, half);
    return one(std::move(op));
  }
  const AtenTensor dx = result_of(call, 0, like(*x)), whole = fresh(x->type, {x->elements()});
  MappedOp op = pointwise_op(P::silu_backward, {&whole, &whole}, whole);
  op.inputs.back() = *x;
  op.outputs.front() = dx;
  return one(std::move(op));
}

}  // namespace

void add_composite_rules(RuleTable& table) {
  add(table, "aten::_euclidean_dist", euclidean_distance);
  add(table, "aten::binary_cross_entropy", cross_entropy_of_two);
  add(table, "aten::binary_cross_entropy_backward", cross_entropy_of_two_backward);
  add(table, "aten::binary_cross_entropy_with_logits", cross_entropy_of_scores);
  add(table, "aten::diag_embed", on_diagonals);
  add(table, "aten::glu", gated<false>);
  add(table, "aten::glu_backward", gated<true>);
}

}  // namespace ridgeline::trace

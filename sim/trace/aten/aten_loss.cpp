// Losses: of classes, and of differences.
#include <algorithm>

#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {
namespace {

MappedOps nll_loss(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *target = call.tensor(1);
  if (x == nullptr || target == nullptr || x->elements() < 1) return std::nullopt;
  return one({NllLoss{false, x->type, x->elements() / x->last(), x->last()},
              {*x, *target},
              {result_of(call, 0, fresh(x->type, {}))}});
}
MappedOps nll_loss_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(0), *x = call.tensor(1), *target = call.tensor(2);
  if (dy == nullptr || x == nullptr || target == nullptr || x->elements() < 1) return std::nullopt;
  return one(
      {NllLoss{true, x->type, x->elements() / x->last(), x->last()}, {*dy, *target}, {result_of(call, 0, like(*x))}});
}
/// A pixel a row: a gather, and a fill with a scatter, whole grids of them.
MappedOps nll_loss2d(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *target = call.tensor(1);
  if (x == nullptr || target == nullptr || target->elements() < 1) return std::nullopt;
  const AtenTensor picked = fresh(x->type, target->sizes);
  return one(pointwise_op(PointwiseFunction::other, {target}, picked));
}
MappedOps nll_loss2d_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(1), *target = call.tensor(2);
  if (x == nullptr || target == nullptr || x->elements() < 1 || target->elements() < 1) return std::nullopt;
  const AtenTensor dx = result_of(call, 0, like(*x)), picked = fresh(x->type, target->sizes);
  std::vector<MappedOp> ops{pointwise_op(PointwiseFunction::fill, {}, dx)};
  ops.push_back(pointwise_op(PointwiseFunction::other, {target}, picked));
  ops.back().backward = HostClass::python_fixed;
  return ops;
}

constexpr double kNoReduction = 0.0;

/// (x, target, reduction): the squares, and their mean or sum.
MappedOps squared_error(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *target = call.tensor(1);
  if (x == nullptr || target == nullptr || x->elements() < 1) return std::nullopt;
  const bool reduces = call.number(2).value_or(1) != kNoReduction;
  const AtenTensor squares = reduces ? like(*x) : result_of(call, 0, like(*x));
  std::vector<MappedOp> ops{pointwise_op(PointwiseFunction::mul, {x, target}, squares)};
  if (reduces)
    ops.push_back({Reduction{ReductionKind::sum_all, x->type, 1, x->elements()},
                   {squares},
                   {result_of(call, 0, fresh(x->type, {}))}});
  return ops;
}
/// (dy, x, target, reduction): zeros, then the gradient over them; dy is one number where the loss was reduced.
MappedOps squared_error_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(0), *x = call.tensor(1), *target = call.tensor(2);
  if (dy == nullptr || x == nullptr || target == nullptr || x->elements() < 1) return std::nullopt;
  const AtenTensor dx = result_of(call, 0, like(*x));
  std::vector<MappedOp> ops{pointwise_op(PointwiseFunction::fill, {}, dx)};
  ops.push_back(pointwise_op(PointwiseFunction::mul, {x, target, dy}, dx));
  return ops;
}

}  // namespace

void add_loss_rules(RuleTable& table) {
  add(table, "aten::nll_loss_forward", nll_loss);
  add(table, "aten::nll_loss_backward", nll_loss_backward);
  add(table, "aten::nll_loss2d_forward", nll_loss2d);
  add(table, "aten::nll_loss2d_backward", nll_loss2d_backward);
  add(table, "aten::mse_loss aten::smooth_l1_loss aten::huber_loss", squared_error);
  add(table, "aten::mse_loss_backward aten::smooth_l1_loss_backward aten::huber_loss_backward", squared_error_backward);
}

}  // namespace ridgeline::trace

// Elements in another order: rolled, flipped, sorted; triangles of matrices.
#include <algorithm>
#include <memory>
#include <vector>

#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {
namespace {

using P = PointwiseFunction;

/// (x, shifts, dims): a kernel for each dimension rolled; without dims, over all as one row.
MappedOps roll(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr) return std::nullopt;
  if (x->elements() < 1) return nothing();
  const Numbers* dims = call.numbers(2);
  const std::size_t times = dims != nullptr ? std::max<std::size_t>(1, dims->size()) : 1;
  std::vector<MappedOp> ops;
  AtenTensor from = *x;
  for (std::size_t i = 0; i < times; ++i) {
    const AtenTensor to = i + 1 == times ? result_of(call, 0, fresh(x->type, x->sizes)) : fresh(x->type, x->sizes);
    ops.push_back(pointwise_op(P::roll, {&from}, to));
    from = to;
  }
  return ops;
}

struct Lines {
  std::int64_t rows = 1, cols = 1;
};
Lines lines_along(const AtenTensor& x, double dimension) {
  const auto rank = static_cast<std::int64_t>(x.sizes.size());
  std::int64_t d = whole_number(dimension, rank);
  if (d < 0) d += rank;
  const std::int64_t cols =
      d >= 0 && d < rank ? std::max<std::int64_t>(1, x.sizes[static_cast<std::size_t>(d)]) : x.elements();
  return {x.elements() / cols, cols};
}

MappedOps sorted(const AtenCall& call, const AtenTensor& x, Lines lines, std::int64_t kept) {
  const std::int64_t left = kept > 0 ? lines.rows * kept : x.elements();
  return one({Sort{x.type, lines.rows, lines.cols, kept, 0},
              {x},
              {result_of(call, 0, fresh(x.type, {left})), fresh(DType::int64, {left})}});
}
/// sort(x, dim, descending), or with `stable` before the dimension.
MappedOps sort(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  return sorted(call, *x, lines_along(*x, call.number(call.inputs.size() > 3 ? 2 : 1).value_or(-1)), 0);
}
MappedOps topk(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  const Lines lines = lines_along(*x, call.number(2).value_or(-1));
  const std::int64_t kept = call.whole(1, 1);
  if (kept < 1) return nothing();
  return sorted(call, *x, lines, std::min(kept, lines.cols));
}

/// (x, dims): elements by places that count down.
MappedOps flip(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr) return std::nullopt;
  if (x->elements() < 1) return nothing();
  MappedOp op = pointwise_op(P::flip, {x}, result_of(call, 0, fresh(x->type, x->sizes)));
  std::get<Pointwise>(op.op).walk = Walk::contiguous;
  return one(std::move(op));
}
/// (sorted row, values) or (values, boundaries): a place within the row for each value.
template <bool RowFirst>
MappedOps searched(const AtenCall& call, const MapContext&) {
  const AtenTensor *row = call.tensor(RowFirst ? 0 : 1), *values = call.tensor(RowFirst ? 1 : 0);
  if (row == nullptr || row->elements() < 1) return std::nullopt;
  const AtenTensor one_value = fresh(row->type, {1});
  if (values == nullptr) values = &one_value;
  if (values->elements() < 1) return nothing();
  const AtenTensor all = fresh(values->type, values->sizes),
                   places = result_of(call, 0, fresh(DType::int64, values->sizes));
  MappedOp op = pointwise_op(P::search, {&all, &all}, places);
  auto& of = std::get<Pointwise>(op.op);
  of.inputs[0] = row->type;
  of.walk = Walk::contiguous;
  of.walked = {std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{row->last(), 1})};
  op.inputs = {*row, *values};
  return one(std::move(op));
}

/// (x, diagonal): a kernel of its own.
template <bool InPlace>
MappedOps triangle(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr) return std::nullopt;
  if (x->elements() < 1) return nothing();
  const AtenTensor y = InPlace ? *x : result_of(call, 0, fresh(x->type, x->sizes));
  MappedOp op = InPlace ? pointwise_op(P::triangle, {}, y) : pointwise_op(P::triangle, {x}, y);
  auto& of = std::get<Pointwise>(op.op);
  of.cols = std::max<std::int64_t>(1, y.last());
  of.rows = std::max<std::int64_t>(1, y.elements() / of.cols);
  of.walk = Walk::contiguous;
  return one(std::move(op));
}

}  // namespace

void add_order_rules(RuleTable& table) {
  add(table, "aten::roll", roll);
  add(table, "aten::flip", flip);
  add(table, "aten::searchsorted", searched<true>);
  add(table, "aten::bucketize", searched<false>);
  add(table, "aten::sort", sort);
  add(table, "aten::topk", topk);
  add(table, "aten::tril aten::triu", triangle<false>);
  add(table, "aten::tril_ aten::triu_", triangle<true>);
}

}  // namespace ridgeline::trace

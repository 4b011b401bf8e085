// Sums, means and norms: which dimensions go decides the kernel.
#include <algorithm>
#include <utility>
#include <vector>

#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {
namespace {

using P = PointwiseFunction;

struct Reduced {
  Reduction op;
  std::vector<std::int64_t> kept;  ///< sizes with the reduced dimensions as 1
};

/// The dimension whose elements lie beside each other: not the last one in images of channels-last, nor one of a single
/// element.
std::size_t innermost_of(const AtenTensor& x) {
  std::size_t best = x.sizes.empty() ? 0 : x.sizes.size() - 1;
  if (x.strides.size() != x.sizes.size()) {
    while (best > 0 && x.sizes[best] == 1) --best;
    return best;
  }
  for (std::size_t i = x.sizes.size(); i-- > 0;)
    if (x.sizes[i] > 1 && (x.sizes[best] <= 1 || x.strides[i] < x.strides[best])) best = i;
  return best;
}

/// Dimensions that lie on end as one.
struct Lying {
  std::int64_t groups = 0, first = 1;  ///< how many are left, elements of the fastest one
  bool beside = true;                  ///< those of the fastest one lie side by side
};
Lying lying(const AtenTensor& x, const std::vector<bool>& gone, bool of_gone) {
  const std::vector<std::int64_t> strides = x.given_strides();
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;
  for (std::size_t i = 0; i < x.sizes.size(); ++i)
    if (gone[i] == of_gone && x.sizes[i] > 1) dimensions.emplace_back(strides[i], x.sizes[i]);
  std::sort(dimensions.begin(), dimensions.end());
  Lying result;
  std::int64_t next = 0;
  for (const auto& [stride, size] : dimensions) {
    if (result.groups == 0) result.beside = stride == 1;
    if (result.groups == 0 || stride != next) ++result.groups;
    if (result.groups == 1) result.first *= size;
    next = stride * size;
  }
  return result;
}

/// `dims` empty: all of them.
Reduced reduce(const AtenTensor& x, const Numbers& dims, bool mean) {
  const auto rank = static_cast<std::int64_t>(x.sizes.size());
  std::vector<bool> gone(x.sizes.size(), dims.empty());
  for (const double dim : dims) {
    std::int64_t d = whole_number(dim, rank);
    if (d < 0) d += rank;
    if (d >= 0 && d < rank) gone[static_cast<std::size_t>(d)] = true;
  }
  Reduced result;
  result.kept = x.sizes;
  std::int64_t kept = 1;
  for (std::size_t i = 0; i < x.sizes.size(); ++i) {
    if (gone[i]) result.kept[i] = 1;
    kept *= result.kept[i];
  }
  const std::int64_t all = x.elements(), reduced = all / std::max<std::int64_t>(1, kept);
  const bool innermost = !gone.empty() && gone[innermost_of(x)];
  if (kept == 1 && !mean) result.op = {ReductionKind::sum_all, x.type, 1, all};
  else if (innermost || kept == 1)
    result.op = {mean ? ReductionKind::mean_cols : ReductionKind::sum_cols, x.type, kept, reduced};
  else result.op = {ReductionKind::sum_rows, x.type, reduced, kept};
  result.op.scattered = lying(x, gone, true).groups > 1;
  const Lying left = lying(x, gone, false);
  const std::int64_t inner = left.beside ? left.first : 1;
  if (result.op.kind == ReductionKind::sum_rows && inner < kept) result.op.inner = inner;
  return result;
}

MappedOps reduction(const AtenCall& call, const AtenTensor* x, const Numbers* dims, bool mean,
                    Accumulator accumulator = Accumulator::number) {
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  Reduced r = reduce(*x, dims != nullptr ? *dims : Numbers{}, mean);
  r.op.accumulator = accumulator;
  return one({r.op, {*x}, {result_of(call, 0, fresh(x->type, r.kept))}});
}

template <bool Mean, Accumulator Carried = Accumulator::number>
MappedOps over_dimensions(const AtenCall& call, const MapContext&) {
  return reduction(call, call.tensor(0), call.numbers(1), Mean, Carried);
}
/// Over one dimension, or over all where none is given: any, prod, and with their places argmax and max.
template <bool PlaceOfAll>
MappedOps over_one(const AtenCall& call, const MapContext&) {
  Numbers dims;
  if (const auto dim = call.number(1)) dims = {*dim};
  return reduction(call, call.tensor(0), &dims, false, PlaceOfAll ? Accumulator::place : Accumulator::number);
}
/// max and min give places along a dimension alone.
MappedOps extremum(const AtenCall& call, const MapContext& context) {
  return call.number(1) ? over_one<true>(call, context) : over_one<false>(call, context);
}
void append_pointwise(std::vector<MappedOp>& ops, PointwiseFunction function,
                      std::initializer_list<const AtenTensor*> inputs, const AtenTensor& output) {
  ops.push_back(pointwise_op(function, inputs, output));
}
/// log(sum(exp(x - max))) + max: the largest, which counts as 0 where it is infinite, then nine kernels in all.
MappedOps log_sum_exp(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  const Numbers* dims = call.numbers(1);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  auto ops = reduction(call, x, dims, false);
  const AtenTensor largest = fresh(x->type, reduce(*x, dims != nullptr ? *dims : Numbers{}, false).kept),
                   infinite = fresh(DType::boolean, largest.sizes), shifted = fresh(x->type, x->sizes);
  append_pointwise(*ops, P::other, {&largest}, largest);
  append_pointwise(*ops, P::equal, {&largest}, infinite);
  append_pointwise(*ops, P::other, {&largest, &infinite}, largest);
  append_pointwise(*ops, P::add, {x, &largest}, shifted);
  append_pointwise(*ops, P::other, {&shifted}, shifted);
  const Reduced sum = reduce(shifted, dims != nullptr ? *dims : Numbers{}, false);
  ops->push_back({sum.op, {shifted}, {largest}});
  append_pointwise(*ops, P::other, {&largest}, largest);
  append_pointwise(*ops, P::add, {&largest, &largest}, largest);
  ops->back().outputs.front() = result_of(call, 0, largest);
  return ops;
}
/// What differs from 0, as 64-bit numbers, summed up.
MappedOps count_nonzero(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  Numbers dims;
  if (const Numbers* list = call.numbers(1)) dims = *list;
  else if (const auto dim = call.number(1)) dims = {*dim};
  const AtenTensor marks = like(*x, DType::boolean), numbers = like(*x, DType::int64);
  std::vector<MappedOp> ops;
  if (x->type != DType::boolean) append_pointwise(ops, P::equal, {x}, marks);
  append_pointwise(ops, P::cast, {&marks}, numbers);
  const Reduced sum = reduce(numbers, dims, false);
  ops.push_back({sum.op, {numbers}, {result_of(call, 0, fresh(DType::int64, sum.kept))}});
  return ops;
}
/// Running sums or products along a dimension: rows side by side, or columns where it is not the innermost.
template <Accumulator Carried>
MappedOps scan(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(x->sizes.size());
  std::int64_t d = call.whole(1, -1);
  if (d < 0) d += rank;
  const std::int64_t along = d >= 0 && d < rank ? x->sizes[static_cast<std::size_t>(d)] : x->elements();
  const std::int64_t others = x->elements() / std::max<std::int64_t>(1, along);
  std::int64_t inner = 1;
  for (std::int64_t i = d + 1; d >= 0 && i < rank; ++i) inner *= x->sizes[static_cast<std::size_t>(i)];
  const bool innermost = others == 1 || inner == 1;
  const DType type = x->type == DType::boolean || x->type == DType::int32 ? DType::int64 : x->type;
  Reduction op = innermost ? Reduction{ReductionKind::scan_cols, type, others, along}
                           : Reduction{ReductionKind::scan_rows, type, along, others};
  op.accumulator = Carried;
  if (!innermost && inner < others) op.inner = inner;
  const AtenTensor y = result_of(call, 0, fresh(type, x->sizes));
  std::vector<MappedOp> ops;
  AtenTensor read = *x;
  if (!x->contiguous()) {  // copied first
    read = fresh(x->type, x->sizes);
    ops = *copy_ops(*x, read);
  }
  ops.push_back({op, {read}, {y}});
  return ops;
}
/// A mean over the pixels of each window.
MappedOps pooled(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  const Numbers* sides = call.numbers(1);
  if (x == nullptr || x->elements() < 1 || x->sizes.size() < 2) return std::nullopt;
  AtenTensor y = fresh(x->type, x->sizes);
  if (!call.outputs.empty() && call.outputs.front().elements() > 0) y = call.outputs.front();
  else if (sides == nullptr || sides->size() != 2) return std::nullopt;
  else
    for (std::size_t i = 0; i < 2; ++i) y.sizes[y.sizes.size() - 2 + i] = whole_number((*sides)[i], 1);
  MappedOp op = pointwise_op(PointwiseFunction::other, {x}, y);
  std::get<Pointwise>(op.op).walk = Walk::strided;
  return one(std::move(op));
}
MappedOps norm(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  const Numbers* dims = call.numbers(2);
  if (dims != nullptr && !dims->empty()) {
    // A norm of single elements is their absolute value.
    const AtenTensor y = result_of(call, 0, fresh(x->type, reduce(*x, *dims, false).kept));
    if (y.elements() == x->elements()) return one(pointwise_op(P::other, {x}, like(*x)));
    return reduction(call, x, dims, false);
  }
  return one(
      {Reduction{ReductionKind::norm_all, x->type, 1, x->elements()}, {*x}, {result_of(call, 0, fresh(x->type, {}))}});
}

}  // namespace

void add_reduction_rules(RuleTable& table) {
  constexpr auto kNumber = Accumulator::number, kPlace = Accumulator::place, kMoments = Accumulator::moments;
  add(table, "aten::sum aten::nansum aten::amax aten::amin", over_dimensions<false>);
  add(table, "aten::mean", over_dimensions<true>);
  add(table, "aten::var aten::var_mean aten::std aten::std_mean", over_dimensions<true, kMoments>);
  add(table, "aten::logsumexp", log_sum_exp);
  add(table, "aten::count_nonzero", count_nonzero);
  add(table, "aten::_adaptive_avg_pool2d", pooled);
  add(table, "aten::argmax aten::argmin", over_one<true>);
  add(table, "aten::all aten::any aten::prod", over_one<false>);
  add(table, "aten::max aten::min", extremum);
  add(table, "aten::cumsum aten::cumprod", scan<kNumber>);
  add(table, "aten::cummax aten::cummin aten::_cummax_helper aten::logcumsumexp aten::_logcumsumexp", scan<kPlace>);
  add(table, "aten::linalg_vector_norm aten::norm", norm);
}

}  // namespace ridgeline::trace

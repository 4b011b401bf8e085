// Sums, means and norms: which dimensions go decides the kernel.
#include <algorithm>

#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {
namespace {

struct Reduced {
  Reduction op;
  std::vector<std::int64_t> kept;  ///< sizes with the reduced dimensions as 1
};

/// The dimension whose elements lie beside each other: not the last one in images of channels-last.
std::size_t innermost_of(const AtenTensor& x) {
  std::size_t best = x.sizes.empty() ? 0 : x.sizes.size() - 1;
  if (x.strides.size() != x.sizes.size()) return best;
  for (std::size_t i = x.sizes.size(); i-- > 0;)
    if (x.sizes[i] > 1 && (x.sizes[best] <= 1 || x.strides[i] < x.strides[best])) best = i;
  return best;
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
  return result;
}

MappedOps reduction(const AtenCall& call, const AtenTensor* x, const Numbers* dims, bool mean) {
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  const Reduced r = reduce(*x, dims != nullptr ? *dims : Numbers{}, mean);
  return one(
      {r.op, {*x}, {result_of(call, 0, fresh(x->type, r.kept))}, HostClass::pointwise, HostClass::pointwise_backward});
}

template <bool Mean>
MappedOps over_dimensions(const AtenCall& call, const MapContext&) {
  return reduction(call, call.tensor(0), call.numbers(1), Mean);
}
/// Over one dimension, or over all where none is given: argmax, any, cumsum.
MappedOps over_one(const AtenCall& call, const MapContext&) {
  Numbers dims;
  if (const auto dim = call.number(1)) dims = {*dim};
  return reduction(call, call.tensor(0), &dims, false);
}
/// Running sums or products along a dimension: rows side by side, or columns where it is not the innermost.
MappedOps scan(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(x->sizes.size());
  std::int64_t d = call.whole(1, -1);
  if (d < 0) d += rank;
  const std::int64_t along = d >= 0 && d < rank ? x->sizes[static_cast<std::size_t>(d)] : x->elements();
  const std::int64_t others = x->elements() / std::max<std::int64_t>(1, along);
  const bool innermost = others == 1 || d == rank - 1;
  const DType type = x->type == DType::boolean || x->type == DType::int32 ? DType::int64 : x->type;
  return one({innermost ? Reduction{ReductionKind::scan_cols, type, others, along}
                        : Reduction{ReductionKind::scan_rows, type, along, others},
              {*x},
              {result_of(call, 0, fresh(type, x->sizes))},
              HostClass::pointwise,
              HostClass::pointwise_backward});
}
/// A mean over the pixels of each channel.
MappedOps pooled(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  return one(pointwise_op(PointwiseFunction::other, {x}, result_of(call, 0, like(*x))));
}
MappedOps norm(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  const Numbers* dims = call.numbers(2);
  if (dims != nullptr && !dims->empty()) return reduction(call, x, dims, false);
  return one({Reduction{ReductionKind::norm_all, x->type, 1, x->elements()},
              {*x},
              {result_of(call, 0, fresh(x->type, {}))},
              HostClass::pointwise,
              HostClass::pointwise_backward});
}

}  // namespace

void add_reduction_rules(RuleTable& table) {
  table.insert({{"aten::sum", over_dimensions<false>},
                {"aten::mean", over_dimensions<true>},
                {"aten::amax", over_dimensions<false>},
                {"aten::amin", over_dimensions<false>},
                {"aten::var", over_dimensions<true>},
                {"aten::var_mean", over_dimensions<true>},
                {"aten::std", over_dimensions<true>},
                {"aten::logsumexp", over_dimensions<false>},
                {"aten::_adaptive_avg_pool2d", pooled},
                {"aten::argmax", over_one},
                {"aten::argmin", over_one},
                {"aten::all", over_one},
                {"aten::any", over_one},
                {"aten::max", over_one},
                {"aten::min", over_one},
                {"aten::prod", over_one},
                {"aten::cumsum", scan},
                {"aten::cumprod", scan},
                {"aten::linalg_vector_norm", norm},
                {"aten::norm", norm}});
}

}  // namespace ridgeline::trace

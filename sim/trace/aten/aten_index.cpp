// Elements and rows by indices, sorting, rolling. Profilers leave out what indices a call was given: how many there
// were is in the grid of its kernel.
#include <algorithm>

#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {
namespace {

using P = PointwiseFunction;

/// Rows that are a multiple of this many bytes are gathered by vectors.
constexpr std::int64_t kVectorBytes = 16;
constexpr std::int64_t kElementsOfBlock = 512;  ///< of the kernel that computes where each element lies

std::int64_t row_elements(const AtenTensor& x) {
  return x.sizes.empty() || x.sizes.front() < 1 ? 1 : x.elements() / x.sizes.front();
}

/// Bits in which indices below `count` differ, in whole digits of the sort.
std::int64_t bits_below(std::int64_t count) {
  std::int64_t bits = 1;
  while ((std::int64_t{1} << bits) < count) ++bits;
  return bits;
}

const AtenTensor* only_index(const AtenCall& call, std::size_t i) {
  const TensorList* list = call.list(i);
  return list != nullptr && list->size() == 1 ? &list->front() : nullptr;
}

MappedOp rows_gathered(const AtenTensor& table, std::int64_t tokens, const AtenTensor& result) {
  const AtenTensor indices = fresh(DType::int64, {tokens});
  return {Embedding{false, table.type, tokens, std::max<std::int64_t>(1, table.sizes.front()), row_elements(table)},
          {table, indices},
          {result},
          HostClass::embedding,
          HostClass::embedding_backward};
}

/// (x, indices): rows of x by one index, elements by several.
MappedOps index(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->sizes.empty() || x->elements() < 1) return std::nullopt;
  const AtenTensor* given = only_index(call, 1);
  if (given != nullptr && given->type == DType::boolean) return std::nullopt;
  const std::int64_t row = row_elements(*x), row_bytes = row * bytes_of(x->type);
  bool by_vectors = given != nullptr && row_bytes % kVectorBytes == 0;
  std::int64_t elements = given != nullptr ? given->elements() * row : 0;
  for (const MeasuredKernel& kernel : call.kernels) {
    if (elements > 0 || kernel.blocks < 1) continue;
    if (kernel.name.find("vectorized_gather") != kernel.name.npos) {
      const std::int64_t threads = std::min<std::int64_t>(256, 32 * std::max<std::int64_t>(1, (row_bytes + 511) / 512)),
                         blocks_of_row = std::max<std::int64_t>(1, (row_bytes + threads * 16 - 1) / (threads * 16));
      elements = kernel.blocks / blocks_of_row * row;
      by_vectors = true;
    } else if (kernel.name.find("index") != kernel.name.npos) {
      elements = kernel.blocks * kElementsOfBlock;
    }
  }
  if (!call.outputs.empty() && call.outputs.front().elements() > 0) elements = call.outputs.front().elements();
  if (elements < 1) return std::nullopt;
  const AtenTensor y = result_of(call, 0, fresh(x->type, {elements}));
  if (by_vectors && elements >= row) return one(rows_gathered(*x, elements / row, y));
  return one(pointwise_op(P::index, {x}, y));
}

/// (x, indices, values, accumulate): a store each, or the indices sorted first so that equal ones are added in order.
MappedOps index_put(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *values = call.tensor(2);
  if (x == nullptr || values == nullptr || x->elements() < 1) return std::nullopt;
  std::int64_t elements = values->elements();
  for (const MeasuredKernel& kernel : call.kernels)  // one value for all
    if (elements <= 1 && kernel.name.find("index_elementwise") != kernel.name.npos)
      elements = kernel.blocks * kElementsOfBlock;
  if (elements < 1) return nothing();
  const AtenTensor stored = fresh(x->type, {elements});
  const auto sorts = [](const MeasuredKernel& kernel) {
    return kernel.name.find("Sort") != kernel.name.npos || kernel.name.find("sort") != kernel.name.npos;
  };
  // Profilers before PyTorch 2.1 do not say whether values are added: its kernels do.
  const bool sorted = std::any_of(call.kernels.begin(), call.kernels.end(), sorts);
  if (call.number(3).value_or(sorted ? 1.0 : 0.0) == 0.0) return one(pointwise_op(P::index, {&stored}, stored));
  const std::int64_t rows = std::max<std::int64_t>(1, x->sizes.empty() ? 1 : x->sizes.front()),
                     keys = std::max<std::int64_t>(1, elements / row_elements(*x));
  const AtenTensor indices = fresh(DType::int64, {keys});
  const std::int64_t row = std::max<std::int64_t>(1, elements / keys);
  const MappedOp added{
      Embedding{
          .backward = true, .type = x->type, .tokens = keys, .vocabulary = rows, .hidden = row, .accumulates = true},
      {values->elements() == elements ? *values : stored, indices},
      {*x},
      HostClass::pointwise,
      HostClass::pointwise_backward};
  if (!call.kernels.empty() && !sorted) return one(added);  // sorted by a call of its own
  // Negative indices go around, the index is scaled to a place, and scaled back before the sort.
  std::vector<MappedOp> ops;
  for (int k = 0; k < 3; ++k) ops.push_back(pointwise_op(P::scale, {&indices}, indices));
  ops.push_back({Sort{DType::int64, 1, keys, 0, bits_below(rows)},
                 {indices},
                 {indices, indices},
                 HostClass::pointwise,
                 HostClass::pointwise_backward});
  ops.push_back(added);
  return ops;
}

/// Out of place: a copy first.
MappedOps index_put_of_copy(const AtenCall& call, const MapContext& context) {
  const AtenTensor* x = call.tensor(0);
  auto ops = index_put(call, context);
  if (x == nullptr || !ops) return std::nullopt;
  std::vector<MappedOp> all = *copy_ops(*x, like(*x));
  all.insert(all.end(), ops->begin(), ops->end());
  return all;
}

/// gather(x, dim, index); scatter_(x, dim, index, source): an element for each index.
template <bool Scatters>
MappedOps along_dimension(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *given = call.tensor(2), *source = call.tensor(3);
  if (x == nullptr || given == nullptr) return std::nullopt;
  const AtenTensor y = Scatters ? fresh(x->type, given->sizes) : result_of(call, 0, fresh(x->type, given->sizes));
  if (y.elements() < 1) return nothing();
  if (Scatters && source != nullptr && source->elements() == y.elements())
    return one(pointwise_op(P::gather, {given, source}, y));
  return one(pointwise_op(P::gather, {given}, y));
}
/// Out of place: a copy first.
MappedOps scatter_of_copy(const AtenCall& call, const MapContext& context) {
  const AtenTensor* x = call.tensor(0);
  auto ops = along_dimension<true>(call, context);
  if (x == nullptr || !ops) return std::nullopt;
  std::vector<MappedOp> all = *copy_ops(*x, like(*x));
  all.insert(all.end(), ops->begin(), ops->end());
  return all;
}

/// index_add_(x, dim, index, source).
MappedOps index_add(const AtenCall& call, const MapContext&) {
  const AtenTensor* source = call.tensor(3);
  if (source == nullptr) return std::nullopt;
  const AtenTensor added = fresh(source->type, {source->elements()});
  return added.elements() > 0 ? one(pointwise_op(P::index, {&added, &added}, added)) : nothing();
}

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
              {result_of(call, 0, fresh(x.type, {left})), fresh(DType::int64, {left})},
              HostClass::pointwise,
              HostClass::pointwise_backward});
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

/// Counts of values: cleared, then added to.
MappedOps histogram(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr) return std::nullopt;
  if (x->elements() < 1) return nothing();
  const AtenTensor counts = result_of(call, 0, fresh(x->type, {std::max<std::int64_t>(1, call.whole(1, 100))}));
  std::vector<MappedOp> ops{pointwise_op(P::fill, {}, counts)};
  ops.push_back(pointwise_op(P::other, {x}, like(*x)));
  return ops;
}

/// How many there are is counted, read back, then their places are written.
MappedOps nonzero(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr) return std::nullopt;
  if (x->elements() < 1) return nothing();
  const AtenTensor count = fresh(DType::int32, {1}), places = fresh(DType::int64, {x->elements()});
  std::vector<MappedOp> ops;
  ops.push_back({Reduction{ReductionKind::sum_all, x->type, 1, x->elements()},
                 {*x},
                 {count},
                 HostClass::pointwise,
                 HostClass::pointwise_backward});
  ops.push_back({Copy{CopyKind::device_to_host, DType::int32, 1, 1, 1},
                 {count},
                 {},
                 HostClass::python_fixed,
                 HostClass::python_fixed});
  ops.push_back(pointwise_op(P::other, {x}, places));
  ops.push_back(pointwise_op(P::other, {&places}, places));
  return ops;
}

/// (x, dims): a copy whose rows stay whole.
MappedOps flip(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr) return std::nullopt;
  if (x->elements() < 1) return nothing();
  const std::int64_t cols = std::max<std::int64_t>(1, x->last());
  return one({Copy{CopyKind::permute, x->type, x->elements() / cols, cols, 1},
              {*x},
              {result_of(call, 0, fresh(x->type, x->sizes))},
              HostClass::contiguous,
              HostClass::view_backward_copy});
}

}  // namespace

void add_index_rules(RuleTable& table) {
  table.insert({{"aten::index", index},
                {"aten::_index_put_impl_", index_put},
                {"aten::index_put_", index_put},
                {"aten::index_put", index_put_of_copy},
                {"aten::gather", along_dimension<false>},
                {"aten::scatter_", along_dimension<true>},
                {"aten::scatter_add_", along_dimension<true>},
                {"aten::scatter", scatter_of_copy},
                {"aten::scatter_add", scatter_of_copy},
                {"aten::index_add_", index_add},
                {"aten::roll", roll},
                {"aten::flip", flip},
                {"aten::sort", sort},
                {"aten::topk", topk},
                {"aten::histc", histogram},
                {"aten::bincount", histogram},
                {"aten::nonzero", nonzero}});
}

}  // namespace ridgeline::trace

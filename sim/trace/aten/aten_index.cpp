// Elements and rows by indices. Profilers leave out what indices a call was given: how many there
// were is in the grid of its kernel.
#include <algorithm>

#include "sim/trace/aten/aten_rules.h"
#include "sim/units/bits_below.h"

namespace ridgeline::trace {
namespace {

using P = PointwiseFunction;

/// Rows that are a multiple of this many bytes are gathered by vectors.
constexpr std::int64_t kVectorBytes = 16;
constexpr std::int64_t kElementsOfBlock = 512;  ///< of the kernel that computes where each element lies

std::int64_t row_elements(const AtenTensor& x) {
  return x.sizes.empty() || x.sizes.front() < 1 ? 1 : x.elements() / x.sizes.front();
}

/// The dimension that one index replaces in `x`, told by the result's sizes: recordings leave out which it is.
std::size_t indexed_dimension(const AtenTensor& x, const AtenTensor& given, const std::vector<std::int64_t>& result) {
  for (std::size_t d = 0; d < x.sizes.size(); ++d) {
    std::vector<std::int64_t> sizes(x.sizes.begin(), x.sizes.begin() + static_cast<std::ptrdiff_t>(d));
    sizes.insert(sizes.end(), given.sizes.begin(), given.sizes.end());
    sizes.insert(sizes.end(), x.sizes.begin() + static_cast<std::ptrdiff_t>(d) + 1, x.sizes.end());
    if (sizes == result) return d;
  }
  return 0;
}
std::int64_t elements_behind(const AtenTensor& x, std::size_t dimension) {
  std::int64_t elements = 1;
  for (std::size_t i = dimension + 1; i < x.sizes.size(); ++i) elements *= x.sizes[i];
  return std::max<std::int64_t>(1, elements);
}

/// Reads or stores of `elements`, in rows of `row` that lie together; nothing of their places is known.
MappedOp at_places(const AtenTensor& x, std::int64_t elements, std::int64_t row, bool stores, P function = P::index) {
  AtenTensor moved = fresh(x.type, {std::max<std::int64_t>(1, elements / row), std::min(row, elements)});
  const AtenTensor plain = moved;
  return stores ? pointwise_op(function, {&plain, &plain}, moved) : pointwise_op(function, {&plain}, moved);
}

const AtenTensor* only_index(const AtenCall& call, std::size_t i) {
  const TensorList* list = call.list(i);
  return list != nullptr && list->size() == 1 ? &list->front() : nullptr;
}

MappedOp rows_gathered(const AtenTensor& table, std::int64_t tokens, const AtenTensor& result) {
  const AtenTensor indices = fresh(DType::int64, {tokens});
  return {Embedding{false, table.type, tokens, std::max<std::int64_t>(1, table.sizes.front()), row_elements(table)},
          {table, indices},
          {result}};
}

/// (x, indices): rows of x by one index, elements by several.
MappedOps index(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->sizes.empty() || x->elements() < 1) return std::nullopt;
  const AtenTensor* given = only_index(call, 1);
  if (given != nullptr && given->type == DType::boolean) return std::nullopt;
  const std::int64_t row = row_elements(*x), row_bytes = row * bytes_of(x->type);
  const bool recorded = !call.outputs.empty() && call.outputs.front().elements() > 0;
  const std::size_t dimension =
      given != nullptr && recorded ? indexed_dimension(*x, *given, call.outputs.front().sizes) : 0;
  // One index leaves one dimension, of which no vectors are gathered.
  bool by_vectors = given != nullptr && given->elements() > 1 && dimension == 0 && row_bytes % kVectorBytes == 0;
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
  const TensorList* all = call.list(1);
  const std::size_t indices = all != nullptr && !all->empty() ? all->size() : 1;
  MappedOp op = at_places(*x, elements, elements_behind(*x, dimension + indices - 1), false,
                          indices > 1 ? P::index_pairs : P::index);
  op.inputs.front().storage = x->storage;
  op.outputs = {y};
  return one(std::move(op));
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
  const TensorList* all = call.list(1);
  const std::size_t count = all != nullptr && !all->empty() ? all->size() : 1;
  const AtenTensor* given = only_index(call, 1);
  const std::size_t dimension = given != nullptr ? indexed_dimension(*x, *given, values->sizes) : 0;
  const std::int64_t behind = elements_behind(*x, dimension + count - 1);
  if (call.number(3).value_or(sorted ? 1.0 : 0.0) == 0.0) {
    MappedOp op =
        at_places(*x, elements, elements % behind == 0 ? behind : 1, true, count > 1 ? P::index_pairs : P::index);
    if (values->elements() == elements) op.inputs.front() = *values;
    if (all != nullptr && !all->empty()) op.inputs.back().storage = all->front().storage;
    op.outputs.front().storage = x->storage;
    return one(std::move(op));
  }
  const bool places = all != nullptr && !all->empty() && all->front().type != DType::boolean;
  const std::int64_t rows = std::max<std::int64_t>(1, x->sizes.empty() ? 1 : x->sizes.front()),
                     keys = std::max<std::int64_t>(1, places ? all->front().elements() : elements / row_elements(*x));
  const AtenTensor indices = fresh(DType::int64, {keys});
  const std::int64_t row = std::max<std::int64_t>(1, elements / keys);
  const MappedOp added{
      Embedding{
          .backward = true, .type = x->type, .tokens = keys, .vocabulary = rows, .hidden = row, .accumulates = true},
      {values->elements() == elements ? *values : stored, indices},
      {*x}};
  if (!call.kernels.empty() && !sorted) return one(added);  // sorted by a call of its own
  // Negative indices go around, the index is scaled to a place, and scaled back before the sort. Unless a gradient's
  // formula calls, the smallest and the largest index are compared with the bounds first, and asserted.
  std::vector<MappedOp> ops;
  const AtenTensor bound = fresh(DType::int64, {}), holds = fresh(DType::boolean, {});
  const bool asserts = std::any_of(call.kernels.begin(), call.kernels.end(), [](const MeasuredKernel& kernel) {
    return kernel.name.find("_assert_async") != kernel.name.npos;
  });
  const bool checks = call.kernels.empty() ? call.phase != Phase::backward : asserts;
  for (std::size_t check = 0; check < (checks ? 2 * count : 0); ++check) {
    const auto summed = [&](const AtenTensor& from, const AtenTensor& to) {
      const Reduction op{ReductionKind::sum_all, from.type, 1, std::max<std::int64_t>(1, from.elements())};
      ops.push_back({op, {from}, {to}});
    };
    summed(indices, bound);
    ops.push_back(pointwise_op(P::equal, {&bound}, holds));
    summed(holds, bound);
  }
  for (int k = 0; k < 3; ++k) ops.push_back(pointwise_op(P::scale, {&indices}, indices));
  ops.push_back({Sort{DType::int64, 1, keys, 0, bits_below(x->elements() / behind)}, {indices}, {indices, indices}});
  ops.push_back(added);
  return ops;
}

/// Formulas of gradients work in place, into zeros that they made; tensors without values are given results of their
/// own.
bool stands_for_in_place(const AtenCall& call) { return call.phase == Phase::backward && call.kernels.empty(); }

/// Out of place: a copy first.
MappedOps index_put_of_copy(const AtenCall& call, const MapContext& context) {
  const AtenTensor* x = call.tensor(0);
  auto ops = index_put(call, context);
  if (x == nullptr || !ops) return std::nullopt;
  if (stands_for_in_place(call)) return ops;
  std::vector<MappedOp> all = *copy_ops(*x, like(*x));
  all.insert(all.end(), ops->begin(), ops->end());
  return all;
}

/// gather(x, dim, index); scatter_(x, dim, index, source): an element for each index.
template <P Function, bool Scatters>
MappedOps along_dimension(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *given = call.tensor(2), *source = call.tensor(3);
  if (x == nullptr || given == nullptr) return std::nullopt;
  AtenTensor y = Scatters ? fresh(x->type, given->sizes) : result_of(call, 0, fresh(x->type, given->sizes));
  if (y.elements() < 1) return nothing();
  if (Scatters) y.storage = x->storage;
  const AtenTensor picked = fresh(x->type, given->sizes);
  const bool whole = source != nullptr && source->elements() == y.elements();
  const bool number = source == nullptr && call.name.starts_with("aten::scatter") &&
                      call.name.find("add") == call.name.npos && call.name.find("reduce") == call.name.npos;
  MappedOp op = whole || !Scatters ? pointwise_op(Function, {given, whole ? source : &picked}, y)
                                   : pointwise_op(number ? P::scatter_value : Function, {given}, y);
  std::get<Pointwise>(op.op).walk = Walk::contiguous;
  if (!Scatters) op.inputs.back().storage = x->storage;
  return one(std::move(op));
}
/// Out of place: a copy first.
template <P Function>
MappedOps scatter_of_copy(const AtenCall& call, const MapContext& context) {
  const AtenTensor* x = call.tensor(0);
  auto ops = along_dimension<Function, true>(call, context);
  if (x == nullptr || !ops) return std::nullopt;
  if (stands_for_in_place(call)) return ops;
  std::vector<MappedOp> all = *copy_ops(*x, like(*x));
  if (call.name == "aten::scatter_reduce" && !all.empty())
    all.push_back(all.front());  // into the result, and again before it is used
  all.insert(all.end(), ops->begin(), ops->end());
  return all;
}

/// Whole slices by indices; up to so many are walked by every thread.
constexpr std::int64_t kFewIndices = 16;
AtenTensor slices_of(const AtenTensor& source, const AtenTensor& index) {
  const std::int64_t slices = std::max<std::int64_t>(1, index.elements());
  AtenTensor all = fresh(source.type, {slices, std::max<std::int64_t>(1, source.elements() / slices)});
  return all;
}
/// index_add_(x, dim, index, source).
template <bool InPlace>
MappedOps index_add(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *index = call.tensor(2), *source = call.tensor(3);
  if (x == nullptr || index == nullptr || source == nullptr) return std::nullopt;
  if (source->elements() < 1) return nothing();
  AtenTensor added = slices_of(*source, *index);
  const P function = index->elements() <= kFewIndices ? P::index_add_few : P::index_add;
  const AtenTensor from = added;
  added.storage = x->storage;
  std::vector<MappedOp> ops;
  if (!InPlace && !stands_for_in_place(call)) ops = *copy_ops(*x, like(*x));
  ops.push_back(pointwise_op(function, {&from}, added));
  ops.back().inputs.front() = *source;
  return ops;
}
/// index_copy_(x, dim, index, source), index_fill_(x, dim, index, value): a store each.
MappedOps index_copy(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *index = call.tensor(2), *source = call.tensor(3);
  if (x == nullptr || index == nullptr || x->sizes.empty()) return std::nullopt;
  std::int64_t d = call.whole(1, 0);
  if (d < 0) d += static_cast<std::int64_t>(x->sizes.size());
  if (d < 0 || d >= static_cast<std::int64_t>(x->sizes.size())) return std::nullopt;
  const auto dimension = static_cast<std::size_t>(d);
  const std::int64_t elements =
      source != nullptr && !source->sizes.empty()
          ? source->elements()
          : x->elements() / std::max<std::int64_t>(1, x->sizes[dimension]) * index->elements();
  if (elements < 1) return nothing();
  const std::int64_t behind = elements_behind(*x, dimension);
  const std::int64_t row = elements % behind == 0 ? behind : 1;
  const AtenTensor written = fresh(x->type, {elements / row, row});
  MappedOp op =
      source != nullptr ? at_places(*x, elements, row, true, P::index_copy) : pointwise_op(P::roll, {}, written);
  if (source != nullptr && source->elements() == elements) op.inputs.front() = *source;
  if (!op.inputs.empty()) op.inputs.back().storage = index->storage;
  op.outputs.front().storage = x->storage;
  return one(std::move(op));
}
/// index_select(x, dim, index): by vectors, along a dimension as gather does, or slice by slice where there are few.
MappedOps index_select(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *index = call.tensor(2);
  if (x == nullptr || index == nullptr || x->sizes.empty() || x->elements() < 1) return std::nullopt;
  if (index->elements() < 1) return nothing();
  std::int64_t d = call.whole(1, 0);
  if (d < 0) d += static_cast<std::int64_t>(x->sizes.size());
  if (d < 0 || d >= static_cast<std::int64_t>(x->sizes.size())) return std::nullopt;
  const auto dimension = static_cast<std::size_t>(d);
  AtenTensor y = fresh(x->type, x->sizes);
  y.sizes[dimension] = index->elements();
  y = result_of(call, 0, y);
  const std::int64_t row = elements_behind(*x, dimension), before = x->elements() / x->sizes[dimension] / row;
  if (index->elements() <= kFewIndices) {
    const AtenTensor slices = slices_of(y, *index);
    MappedOp op = pointwise_op(P::index_few, {&slices}, slices);
    op.inputs.front().storage = x->storage;
    op.outputs = {y};
    return one(std::move(op));
  }
  if (before == 1 && row * bytes_of(x->type) % kVectorBytes == 0) {
    AtenTensor table = *x;
    table.sizes = {x->sizes[dimension], row};
    table.strides.clear();
    return one(rows_gathered(table, index->elements(), y));
  }
  if (before == 1)
    return one({Embedding{false, x->type, index->elements(), x->sizes[dimension], row}, {*x, *index}, {y}});
  const AtenTensor places = fresh(DType::int64, y.sizes), picked = fresh(x->type, y.sizes);
  MappedOp op = pointwise_op(P::gather, {&places, &picked}, y);
  op.inputs.front().storage = index->storage;
  op.inputs.back().storage = x->storage;
  std::get<Pointwise>(op.op).walk = Walk::contiguous;
  return one(std::move(op));
}

/// Counts of values: cleared, then added to.
MappedOps histogram(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr) return std::nullopt;
  if (x->elements() < 1) return nothing();
  std::vector<MappedOp> ops;
  std::int64_t bins = call.whole(1, 100);
  if (call.name == "aten::bincount") {  // the host reads the smallest and the largest value first
    bins = call.whole(2, 1);
    const AtenTensor bound = fresh(x->type, {});
    for (int k = 0; k < 2; ++k) {
      ops.push_back({Reduction{ReductionKind::sum_all, x->type, 1, x->elements()}, {*x}, {bound}});
      ops.push_back({Copy{CopyKind::device_to_host, x->type, 1, 1, 1},
                     {bound},
                     {},
                     HostClass::python_fixed,
                     HostClass::python_fixed});
    }
  }
  const AtenTensor counts = result_of(call, 0, fresh(x->type, {std::max<std::int64_t>(1, bins)}));
  ops.push_back(pointwise_op(P::fill, {}, counts));
  ops.push_back(pointwise_op(P::other, {x}, like(*x)));
  return ops;
}

/// How many there are is counted, read back, then their places are written.
MappedOp places_of(const AtenTensor& mask, const AtenTensor& places) {
  Pointwise op;
  op.function = P::nonzero;
  op.cols = std::max<std::int64_t>(1, mask.last());
  op.rows = std::max<std::int64_t>(1, mask.elements() / op.cols);
  op.inputs[0] = mask.type;
  op.inputs[1] = op.inputs[2] = DType::int64;
  op.input_count = mask.sizes.size() > 1 ? 2 : 1;
  op.output = DType::int64;
  MappedOp mapped{op, {mask}, {places}};
  if (op.input_count > 1) mapped.inputs.push_back(places);
  return mapped;
}
MappedOps nonzero(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr) return std::nullopt;
  if (x->elements() < 1) return nothing();
  return one(places_of(*x, fresh(DType::int64, {std::max<std::int64_t>(1, x->elements() / 2)})));
}
/// (x, mask): the places of what is marked, then an index.
MappedOps masked_select(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *mask = call.tensor(1);
  if (x == nullptr || mask == nullptr) return std::nullopt;
  if (x->elements() < 1 || mask->elements() < 1) return nothing();
  const std::int64_t half = std::max<std::int64_t>(1, mask->elements() / 2);
  std::vector<MappedOp> ops{places_of(*mask, fresh(DType::int64, {half}))};
  ops.push_back(at_places(*x, half, 1, false));
  ops.back().inputs.front().storage = x->storage;
  ops.back().outputs.front().storage = call.outputs.empty() ? AtenTensor::kNoStorage : call.outputs.front().storage;
  return ops;
}

}  // namespace

void add_index_rules(RuleTable& table) {
  add(table, "aten::index", index);
  add(table, "aten::_index_put_impl_ aten::index_put_", index_put);
  add(table, "aten::index_put", index_put_of_copy);
  add(table, "aten::gather", along_dimension<P::gather, false>);
  add(table, "aten::scatter_ aten::scatter_add_ aten::scatter_reduce_", along_dimension<P::scatter_add, true>);
  add(table, "aten::scatter aten::scatter_add aten::scatter_reduce", scatter_of_copy<P::scatter_add>);
  add(table, "aten::index_add_", index_add<true>);
  add(table, "aten::index_add", index_add<false>);
  add(table, "aten::index_copy_ aten::index_fill_", index_copy);
  add(table, "aten::index_select", index_select);
  add(table, "aten::masked_select", masked_select);
  add(table, "aten::histc aten::bincount", histogram);
  add(table, "aten::nonzero", nonzero);
}

}  // namespace ridgeline::trace

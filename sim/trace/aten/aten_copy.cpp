// Copies, casts and transfers: what `copy_`, `clone` and `_to_copy` run depends on types and layouts of both sides.
#include <algorithm>

#include "sim/trace/aten/aten_rules.h"
#include "sim/workload/walked_dimensions.h"

namespace ridgeline::trace {
namespace {

/// Whole rows move as long as the innermost dimension stays innermost.
CopyKind kind_of_copy(const AtenTensor& from, const AtenTensor& to) {
  if (from.contiguous() && to.contiguous()) return CopyKind::contiguous;
  if (from.strides == to.strides && from.dense()) return CopyKind::contiguous;
  const auto innermost = [](const AtenTensor& x) {
    return x.strides.size() != x.sizes.size() || x.sizes.empty() || x.strides.back() == 1 || x.last() == 1;
  };
  return innermost(from) && innermost(to) ? CopyKind::permute : CopyKind::transpose;
}

MappedOp moved(CopyKind kind, const AtenTensor& from, const AtenTensor& to) {
  const std::int64_t cols = std::max<std::int64_t>(1, to.last());
  Copy op{kind, to.type, to.elements() / cols, cols, 1};
  if ((kind == CopyKind::permute || kind == CopyKind::transpose) && from.sizes == to.sizes) {
    op.walked = walked_dimensions(to.sizes, from.given_strides(), to.given_strides());
    const bool by_rows = kind == CopyKind::permute;
    if (op.walked == (by_rows ? halves_of_rows(op.rows, cols) : transposed_matrix(op.rows, cols))) op.walked = {};
  }
  return {op, {from}, {to}};
}

MappedOps copy_into(const AtenCall& call, const MapContext&) {
  const AtenTensor *to = call.tensor(0), *from = call.tensor(1);
  if (to == nullptr || from == nullptr) return std::nullopt;
  return copy_ops(*from, *to);
}

MappedOps to_copy(const AtenCall& call, const MapContext&) {
  const AtenTensor* from = call.tensor(0);
  if (from == nullptr || call.outputs.empty()) return std::nullopt;
  return copy_ops(*from, call.outputs.front());
}

MappedOps clone(const AtenCall& call, const MapContext&) {
  const AtenTensor* from = call.tensor(0);
  if (from == nullptr) return std::nullopt;
  AtenTensor to = like(*from);
  // torch.contiguous_format and torch.channels_last; otherwise the order of dimensions is kept.
  constexpr double kContiguousFormat = 0.0, kChannelsLast = 2.0;
  if (call.number(1) == kContiguousFormat) to.strides.clear();
  if (call.number(1) == kChannelsLast && to.sizes.size() == 4) {
    const std::int64_t channels = to.sizes[1], row = to.sizes[3] * channels;
    to.strides = {to.sizes[2] * row, 1, row, channels};
  }
  return copy_ops(*from, result_of(call, 0, to));
}

MappedOps to_host(const AtenCall& call, const MapContext&) {
  const AtenTensor* from = call.tensor(0);
  if (from == nullptr) return std::nullopt;
  if (from->on_host) return nothing();
  return one({Copy{CopyKind::device_to_host, from->type, 1, 1, 1},
              {*from},
              {},
              HostClass::python_fixed,
              HostClass::python_fixed});
}

/// (gradient, sizes of the whole, where): zeros, then the part is copied into them.
MappedOps part_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor* part = call.tensor(0);
  const Numbers* sizes = call.numbers(1);
  if (part == nullptr || sizes == nullptr) return std::nullopt;
  AtenTensor whole = fresh(part->type, {});
  for (const double size : *sizes) whole.sizes.push_back(whole_number(size, 0));
  whole = result_of(call, 0, whole);
  std::vector<MappedOp> ops{pointwise_op(PointwiseFunction::fill, {}, whole)};
  if (part->elements() < 1) return ops;
  AtenTensor target = *part;  // the part of the whole that is written
  target.storage = whole.storage;
  if (target.sizes.size() == whole.sizes.size()) target.strides = whole.given_strides();
  ops.push_back(moved(CopyKind::permute, *part, target));
  ops.back().backward = HostClass::python_fixed;
  return ops;
}

/// (x, times): x over and over.
MappedOps repeat(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  const Numbers* times = call.numbers(1);
  if (x == nullptr || times == nullptr || times->size() < x->sizes.size()) return std::nullopt;
  AtenTensor whole = fresh(x->type, {});
  const std::size_t new_dimensions = times->size() - x->sizes.size();
  for (std::size_t i = 0; i < times->size(); ++i)
    whole.sizes.push_back(
        whole_number((*times)[i] * (i < new_dimensions ? 1.0 : static_cast<double>(x->sizes[i - new_dimensions])), 0));
  whole = result_of(call, 0, whole);
  if (whole.elements() < 1) return nothing();
  // The kernel copies a view in which each dimension is repeated beside itself.
  const std::vector<std::int64_t> strides = x->given_strides();
  std::vector<std::int64_t> sizes, walked;
  for (std::size_t i = 0; i < times->size(); ++i) {
    sizes.push_back(whole_number((*times)[i], 1));
    walked.push_back(0);
    if (i < new_dimensions) continue;
    sizes.push_back(x->sizes[i - new_dimensions]);
    walked.push_back(strides[i - new_dimensions]);
  }
  AtenTensor shown = fresh(x->type, sizes);
  shown.strides = walked;
  shown.storage = x->storage;
  MappedOp op = moved(CopyKind::permute, shown, whole);
  std::get<Copy>(op.op).walked = walked_dimensions(sizes, walked);
  op.forward = HostClass::pointwise;
  op.backward = HostClass::pointwise_backward;
  return one(std::move(op));
}

/// (x, widths of the edges from the last dimension on, value): the value everywhere, then x into the middle.
MappedOps constant_pad(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  const Numbers* widths = call.numbers(1);
  if (x == nullptr || widths == nullptr || widths->size() % 2 != 0 || widths->size() / 2 > x->sizes.size())
    return std::nullopt;
  AtenTensor whole = fresh(x->type, x->sizes), middle = *x;
  for (std::size_t i = 0; i + 1 < widths->size(); i += 2) {
    const std::size_t dimension = x->sizes.size() - 1 - i / 2;
    const std::int64_t before = whole_number((*widths)[i], 0), after = whole_number((*widths)[i + 1], 0);
    whole.sizes[dimension] += before + after;
    middle.sizes[dimension] += std::min<std::int64_t>(0, before) + std::min<std::int64_t>(0, after);
  }
  whole = result_of(call, 0, whole);
  if (whole.elements() < 1) return nothing();
  std::vector<MappedOp> ops{pointwise_op(PointwiseFunction::fill, {}, whole)};
  if (middle.elements() < 1) return ops;
  AtenTensor target = middle;
  target.storage = whole.storage;
  target.strides = whole.given_strides();
  ops.push_back(moved(CopyKind::permute, middle, target));
  return ops;
}

}  // namespace

MappedOps copy_ops(const AtenTensor& from, const AtenTensor& to) {
  if (to.elements() < 1 || (from.on_host && to.on_host)) return nothing();
  if (from.on_host) return one(moved(CopyKind::host_to_device, from, to));
  if (to.on_host) return one(moved(CopyKind::device_to_host, from, to));
  if (from.type != to.type || from.elements() != to.elements()) {
    MappedOp cast = pointwise_op(PointwiseFunction::cast, {&from}, to);
    cast.forward = HostClass::cast;
    cast.backward = HostClass::cast_backward;
    return one(std::move(cast));
  }
  return one(moved(kind_of_copy(from, to), from, to));
}

void add_copy_rules(RuleTable& table) {
  add(table, "aten::copy_", copy_into);
  add(table, "aten::_to_copy", to_copy);
  add(table, "aten::clone", clone);
  add(table, "aten::select_backward aten::slice_backward", part_backward);
  add(table, "aten::constant_pad_nd", constant_pad);
  add(table, "aten::repeat", repeat);
  add(table, "aten::_local_scalar_dense", to_host);
}

}  // namespace ridgeline::trace

// Calls that work row by row: softmax, normalisation, dropout, embeddings, losses.
#include <algorithm>

#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {
namespace {

/// PyTorch's number of a scalar type.
DType type_from_number(double number, DType otherwise) {
  switch (whole_number(number, -1)) {
    case 5: return DType::fp16;
    case 6: return DType::fp32;
    case 7: return DType::fp64;
    case 15: return DType::bf16;
    default: return otherwise;
  }
}

/// Rows along a dimension that need not be the last.
struct Rows {
  std::int64_t rows, cols, inner;
};
Rows rows_along(const AtenTensor& x, double dimension) {
  const auto rank = static_cast<std::int64_t>(x.sizes.size());
  std::int64_t d = whole_number(dimension, rank);
  if (d < 0) d += rank;
  const std::int64_t cols = d >= 0 && d < rank ? x.sizes[static_cast<std::size_t>(d)] : 1;
  std::int64_t inner = 1;
  for (std::int64_t i = d + 1; d >= 0 && i < rank; ++i) inner *= x.sizes[static_cast<std::size_t>(i)];
  return {x.elements() / std::max<std::int64_t>(1, cols), cols, std::max<std::int64_t>(1, inner)};
}

/// The kernels take contiguous tensors: others are copied first, and the copy stands in their place.
std::vector<MappedOp> made_contiguous(AtenTensor& x) {
  if (x.contiguous()) return {};
  const AtenTensor plain = fresh(x.type, x.sizes);
  std::vector<MappedOp> ops = *copy_ops(x, plain);
  x = plain;
  return ops;
}

template <bool Log>
MappedOps softmax(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  const bool widened = is_half(x->type) && call.number(2).value_or(0) != 0;
  const Rows r = rows_along(*x, call.number(1).value_or(-1));
  const AtenTensor y = result_of(call, 0, fresh(widened ? DType::fp32 : x->type, x->sizes));
  AtenTensor read = *x;
  std::vector<MappedOp> ops = made_contiguous(read);
  ops.push_back({Softmax{Log, false, x->type, y.type, r.rows, r.cols, r.inner}, {read}, {y}});
  return ops;
}

/// Softmax, then zeros in the rows whose inputs are all minus infinity: compared, reduced, chosen by.
MappedOps safe_softmax(const AtenCall& call, const MapContext& context) {
  const AtenTensor* x = call.tensor(0);
  auto ops = softmax<false>(call, context);
  if (!ops) return std::nullopt;
  const Rows r = rows_along(*x, call.number(1).value_or(-1));
  const AtenTensor y = ops->back().outputs.front(), in = fresh(y.type, {r.rows, r.cols}),
                   equal = fresh(DType::boolean, x->sizes), masked = fresh(DType::boolean, {r.rows, 1}),
                   zero = fresh(y.type, {});
  ops->push_back(pointwise_op(PointwiseFunction::equal, {x}, equal));
  ops->push_back({Reduction{ReductionKind::sum_cols, DType::boolean, r.rows, r.cols}, {equal}, {masked}});
  ops->push_back(pointwise_op(PointwiseFunction::fill, {}, zero));
  ops->push_back(pointwise_op(PointwiseFunction::other, {&masked, &in}, in));
  ops->back().inputs.back() = ops->back().outputs.front() = y;
  return ops;
}

template <bool Log>
MappedOps softmax_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(0), *y = call.tensor(1);
  if (dy == nullptr || y == nullptr || y->elements() < 1) return std::nullopt;
  const Rows r = rows_along(*y, call.number(2).value_or(-1));
  DType type = type_from_number(call.number(3).value_or(-1), dtype_of_aten(call.word(3)).value_or(y->type));
  const AtenTensor dx = result_of(call, 0, fresh(type, y->sizes));
  AtenTensor gradient = *dy, saved = *y;
  std::vector<MappedOp> ops = made_contiguous(gradient);
  for (MappedOp& op : made_contiguous(saved)) ops.push_back(std::move(op));
  ops.push_back({Softmax{Log, true, y->type, dx.type, r.rows, r.cols, r.inner}, {gradient, saved}, {dx}});
  return ops;
}

std::int64_t normalised(const AtenCall& call, const AtenTensor& x) {
  double cols = 1.0;
  if (const Numbers* shape = call.numbers(1); shape != nullptr && !shape->empty())
    for (const double size : *shape) cols *= size;
  else cols = static_cast<double>(x.last());
  return std::max<std::int64_t>(1, whole_number(cols, 1));
}

MappedOps layer_norm(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *weight = call.tensor(2), *bias = call.tensor(3);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  const std::int64_t cols = normalised(call, *x), rows = x->elements() / cols;
  const AtenTensor scale = weight != nullptr ? *weight : fresh(x->type, {cols});
  MappedOp op{Norm{false, false, bias != nullptr, x->type, rows, cols}, {*x, scale}, {}};
  if (bias != nullptr) op.inputs.push_back(*bias);
  op.outputs = {result_of(call, 0, fresh(x->type, x->sizes)), fresh(DType::fp32, {rows}), fresh(DType::fp32, {rows})};
  return one(std::move(op));
}

MappedOps layer_norm_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(0), *x = call.tensor(1), *weight = call.tensor(5), *bias = call.tensor(6);
  if (dy == nullptr || x == nullptr || x->elements() < 1) return std::nullopt;
  std::int64_t cols = x->last();
  if (const Numbers* shape = call.numbers(2); shape != nullptr && !shape->empty()) {
    double product = 1.0;
    for (const double size : *shape) product *= size;
    cols = std::max<std::int64_t>(1, whole_number(product, 1));
  }
  const std::int64_t rows = x->elements() / cols;
  const AtenTensor scale = weight != nullptr ? *weight : fresh(x->type, {cols});
  const AtenTensor mean = call.tensor(3) != nullptr ? *call.tensor(3) : fresh(DType::fp32, {rows});
  const AtenTensor deviation = call.tensor(4) != nullptr ? *call.tensor(4) : fresh(DType::fp32, {rows});
  MappedOp op{Norm{false, true, bias != nullptr, x->type, rows, cols},
              {*dy, *x, scale, mean, deviation},
              {result_of(call, 0, fresh(x->type, x->sizes)), fresh(scale.type, {cols})}};
  if (bias != nullptr) op.outputs.push_back(fresh(scale.type, {cols}));
  return one(std::move(op));
}

/// (x, shape, weight, eps) and (dy, x, shape, rstd, weight, mask).
MappedOps rms_norm(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *weight = call.tensor(2);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  const std::int64_t cols = normalised(call, *x), rows = x->elements() / cols;
  return one({Norm{true, false, false, x->type, rows, cols},
              {*x, weight != nullptr ? *weight : fresh(x->type, {cols})},
              {result_of(call, 0, fresh(x->type, x->sizes)), fresh(DType::fp32, {rows})}});
}
MappedOps rms_norm_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(0), *x = call.tensor(1), *weight = call.tensor(4);
  if (dy == nullptr || x == nullptr || x->elements() < 1) return std::nullopt;
  const std::int64_t cols = std::max<std::int64_t>(1, weight != nullptr ? weight->elements() : x->last());
  const std::int64_t rows = x->elements() / cols;
  return one({Norm{true, true, false, x->type, rows, cols},
              {*dy, *x, weight != nullptr ? *weight : fresh(x->type, {cols}), fresh(DType::fp32, {rows})},
              {fresh(x->type, x->sizes), fresh(x->type, {cols})}});
}

void append(std::vector<MappedOp>& ops, MappedOp op) { ops.push_back(std::move(op)); }

/// (x, weight, bias, N, C, HxW, groups): moments of each group, a scale and a shift of each channel, one sweep with
/// them.
MappedOps group_norm(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  const std::int64_t images = call.whole(3, 0), channels = call.whole(4, 0), groups = call.whole(6, 1);
  if (x == nullptr || x->elements() < 1 || images < 1 || channels < 1 || groups < 1) return std::nullopt;
  const std::int64_t rows = images * groups, planes = images * channels;
  const AtenTensor statistics = fresh(DType::fp32, {rows}), of_channels = fresh(DType::fp32, {planes, 1}),
                   in = fresh(x->type, {planes, x->elements() / planes});
  std::vector<MappedOp> ops =
      *one({Reduction{ReductionKind::mean_cols, x->type, rows, x->elements() / rows, Accumulator::groups},
            {*x},
            {statistics},
            HostClass::layer_norm,
            HostClass::layer_norm_backward});
  append(ops, pointwise_op(PointwiseFunction::mul, {&of_channels, &of_channels}, of_channels));
  append(ops, pointwise_op(PointwiseFunction::add, {&in, &of_channels}, in));
  ops.back().inputs.front() = *x;
  ops.back().outputs.front() = result_of(call, 0, like(*x));
  return ops;
}
/// (dy, x, mean, rstd, weight, N, C, HxW, groups, mask): two sums of each channel of each image, what dx is made of
/// from them, dx in one sweep, the gradients of weight and bias.
MappedOps group_norm_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(0), *x = call.tensor(1);
  const std::int64_t images = call.whole(5, 0), channels = call.whole(6, 0), groups = call.whole(8, 1);
  if (dy == nullptr || x == nullptr || x->elements() < 1 || images < 1 || channels < 1 || groups < 1)
    return std::nullopt;
  const std::int64_t planes = images * channels, pixels = x->elements() / planes;
  const AtenTensor of_channels = fresh(DType::fp32, {planes, 1}), both = fresh(x->type, {planes, 2 * pixels}),
                   of_groups = fresh(DType::fp32, {images * groups, 1}), in = fresh(x->type, {planes, pixels});
  std::vector<MappedOp> ops =
      *one({Reduction{ReductionKind::sum_cols, x->type, planes, 2 * pixels, Accumulator::groups},
            {both},
            {of_channels},
            HostClass::layer_norm_backward,
            HostClass::layer_norm_backward});
  append(ops, pointwise_op(PointwiseFunction::mul, {&of_channels, &of_channels}, of_channels));
  append(ops, pointwise_op(PointwiseFunction::mul, {&of_groups, &of_groups}, of_groups));
  append(ops, pointwise_op(PointwiseFunction::add, {&in, &in, &of_channels}, in));
  ops.back().inputs[0] = *dy;
  ops.back().inputs[1] = *x;
  ops.back().outputs.front() = like(*x);
  append(ops, {Reduction{ReductionKind::sum_rows, DType::fp32, images, channels},
               {of_channels},
               {fresh(DType::fp32, {channels})},
               HostClass::view,
               HostClass::view_backward});
  return ops;
}

MappedOps dropout(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->elements() < 1) return std::nullopt;
  return one({Dropout{x->type, x->elements()}, {*x}, {result_of(call, 0, like(*x)), like(*x, DType::boolean)}});
}

MappedOps rows_of_table(const AtenTensor* table, const AtenTensor* indices, const AtenCall& call) {
  if (table == nullptr || indices == nullptr || table->sizes.size() != 2 || indices->elements() < 1)
    return std::nullopt;
  std::vector<std::int64_t> sizes = indices->sizes;
  sizes.push_back(table->sizes[1]);
  return one({Embedding{false, table->type, indices->elements(), table->sizes[0], table->sizes[1]},
              {*table, *indices},
              {result_of(call, 0, fresh(table->type, sizes))}});
}
MappedOps embedding(const AtenCall& call, const MapContext&) {
  return rows_of_table(call.tensor(0), call.tensor(1), call);
}
MappedOps embedding_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(0), *indices = call.tensor(1);
  const std::int64_t rows = call.whole(2, 0);
  if (dy == nullptr || indices == nullptr || rows < 1 || indices->elements() < 1) return std::nullopt;
  const std::int64_t hidden = dy->last();
  return one({Embedding{true, dy->type, indices->elements(), rows, hidden},
              {*dy, *indices},
              {result_of(call, 0, fresh(dy->type, {rows, hidden}))}});
}

}  // namespace

void add_row_rules(RuleTable& table) {
  add(table, "aten::_softmax", softmax<false>);
  add(table, "aten::_safe_softmax", safe_softmax);
  add(table, "aten::_log_softmax", softmax<true>);
  add(table, "aten::_softmax_backward_data", softmax_backward<false>);
  add(table, "aten::_log_softmax_backward_data", softmax_backward<true>);
  add(table, "aten::native_layer_norm", layer_norm);
  add(table, "aten::native_layer_norm_backward", layer_norm_backward);
  add(table, "aten::_fused_rms_norm", rms_norm);
  add(table, "aten::_fused_rms_norm_backward", rms_norm_backward);
  add(table, "aten::native_group_norm", group_norm);
  add(table, "aten::native_group_norm_backward", group_norm_backward);
  add(table, "aten::native_dropout aten::_fused_dropout", dropout);
  add(table, "aten::embedding", embedding);
  add(table, "aten::embedding_dense_backward", embedding_backward);
}

}  // namespace ridgeline::trace

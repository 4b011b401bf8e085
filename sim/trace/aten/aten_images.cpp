// Operations of image networks beside convolutions: batch norm, pooling, upsampling.
#include <algorithm>

#include "sim/trace/aten/aten_rules.h"
#include "sim/trace/aten/image_sides.h"
#include "sim/workload/convolution_bounds.h"

namespace ridgeline::trace {
namespace {

MappedOps image(ImageFunction function, bool backward, const AtenTensor& x, std::vector<AtenTensor> inputs,
                AtenTensor output) {
  ImageOp op{.function = function, .backward = backward, .channels_last = x.channels_last(), .type = x.type};
  if (x.sizes.size() < 2 || x.elements() < 1) return std::nullopt;
  op.batch = x.sizes[0];
  op.channels = x.sizes[1];
  const Sides sides = x.sizes.size() > 2 ? sides_of(x) : Sides{};
  if (sides.rows < 1 || sides.columns < 1) return std::nullopt;
  op.size = sides.rows, op.width = sides.columns == sides.rows ? 0 : sides.columns;
  return one({op, std::move(inputs), {std::move(output)}});
}

constexpr std::size_t kNever = 99;  ///< an argument that no call has

/// `Training`: which argument says whether statistics are those of the batch.
template <std::size_t Input, std::size_t Training>
MappedOps batch_norm(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(Input);
  if (x == nullptr) return std::nullopt;
  MappedOps ops = image(ImageFunction::batch_norm, false, *x, {*x}, result_of(call, 0, like(*x)));
  if (ops && call.number(Training).value_or(1.0) == 0.0) std::get<ImageOp>(ops->front().op).evaluation = true;
  return ops;
}
template <std::size_t Gradient, std::size_t Input, std::size_t Training>
MappedOps batch_norm_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(Gradient), *x = call.tensor(Input);
  if (dy == nullptr || x == nullptr) return std::nullopt;
  MappedOps ops = image(ImageFunction::batch_norm, true, *x, {*dy, *x}, result_of(call, 0, like(*x)));
  if (ops && call.number(Training).value_or(1.0) == 0.0) std::get<ImageOp>(ops->front().op).evaluation = true;
  return ops;
}

/// Pooling of x to y by windows and steps of the lists given.
MappedOps pool(ImageFunction function, const AtenTensor& x, const AtenTensor& y, const Numbers* window,
               const Numbers* stride, std::vector<AtenTensor> inputs, bool backward, const AtenCall& call) {
  if (x.sizes.size() < 4 || y.sizes.size() != x.sizes.size()) return std::nullopt;
  MappedOps ops = image(function, backward, x, std::move(inputs), result_of(call, 0, backward ? like(x) : y));
  if (!ops) return ops;
  auto& op = std::get<ImageOp>(ops->front().op);
  const Sides out = sides_of(y);
  if (out.rows < 1 || out.columns < 1) return std::nullopt;
  op.window = std::clamp<std::int64_t>(of_dimension(window, 0, 2), 1, kLargestKernelOrStride);
  op.stride = std::clamp<std::int64_t>(of_dimension(stride, 0, op.window), 1, kLargestKernelOrStride);
  op.out_size = out.rows, op.out_width = out.columns;
  return ops;
}
/// (x, window, stride, padding, …).
template <ImageFunction Function>
MappedOps pool_forward(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->sizes.size() < 4) return std::nullopt;
  const Numbers *window = call.numbers(1), *stride = call.numbers(2);
  AtenTensor y = fresh(x->type, x->sizes);
  for (std::size_t i = 2; i < y.sizes.size(); ++i) {
    const std::int64_t step = of_dimension(stride, i - 2, of_dimension(window, i - 2, 2));
    y.sizes[i] = std::max<std::int64_t>(1, y.sizes[i] / std::max<std::int64_t>(1, step));
  }
  return pool(Function, *x, result_of(call, 0, y), window, stride, {*x}, false, call);
}
/// (dy, x, window, stride, …).
template <ImageFunction Function>
MappedOps pool_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(0), *x = call.tensor(1);
  if (dy == nullptr || x == nullptr) return std::nullopt;
  return pool(Function, *x, *dy, call.numbers(2), call.numbers(3), {*dy, *x}, true, call);
}
/// (dy, x): windows as large as the sides say.
MappedOps adaptive_pool_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(0), *x = call.tensor(1);
  if (dy == nullptr || x == nullptr || dy->sizes.size() != x->sizes.size() || dy->last() < 1) return std::nullopt;
  const Numbers windows{static_cast<double>(std::max<std::int64_t>(1, x->last() / dy->last()))};
  return pool(ImageFunction::avg_pool2d, *x, *dy, &windows, &windows, {*dy, *x}, true, call);
}
}  // namespace

void add_image_rules(RuleTable& table) {
  add(table,
      "aten::cudnn_batch_norm aten::native_batch_norm aten::_native_batch_norm_legit "
      "aten::miopen_batch_norm",
      batch_norm<0, 5>);
  add(table, "aten::_batch_norm_with_update", batch_norm<0, kNever>);
  add(table, "aten::cudnn_batch_norm_backward", batch_norm_backward<1, 0, kNever>);
  add(table, "aten::native_batch_norm_backward aten::batch_norm_backward", batch_norm_backward<0, 1, 7>);
  add(table, "aten::max_pool2d_with_indices", pool_forward<ImageFunction::max_pool2d>);
  add(table, "aten::max_pool2d_with_indices_backward", pool_backward<ImageFunction::max_pool2d>);
  add(table, "aten::avg_pool2d", pool_forward<ImageFunction::avg_pool2d>);
  add(table, "aten::avg_pool2d_backward", pool_backward<ImageFunction::avg_pool2d>);
  add(table, "aten::_adaptive_avg_pool2d_backward", adaptive_pool_backward);
}

}  // namespace ridgeline::trace

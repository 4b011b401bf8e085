// Convolutions.
//
// A transposed convolution is the mirror image of a plain one: its forward pass computes images from outputs, as the
// plain one's input gradient does. Signals and volumes are images of one row, or of the rows of all their planes.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/trace/aten/aten_rules.h"
#include "sim/trace/aten/image_sides.h"
#include "sim/trace/aten/library_kernel.h"
#include "sim/workload/convolution_bounds.h"
#include "sim/workload/depthwise.h"

namespace ridgeline::trace {
namespace {

struct Geometry {
  const Numbers *stride = nullptr, *padding = nullptr, *dilation = nullptr;
  bool transposed = false;
  std::int64_t groups = 1;
};

/// As recorded; where it is not, as many times as the sides of the image and of `y` (null: not known either) say.
std::int64_t stride_of(const Geometry& geometry, std::size_t dimension, const AtenTensor& x, const AtenTensor* y) {
  if (geometry.stride != nullptr && !geometry.stride->empty()) return of_dimension(geometry.stride, dimension, 1);
  if (y == nullptr || y->sizes.size() != x.sizes.size()) return 1;
  const std::int64_t x_side = x.sizes[2 + dimension], y_side = y->sizes[2 + dimension];
  const std::int64_t from = geometry.transposed ? y_side : x_side, to = geometry.transposed ? x_side : y_side;
  return to < 1 ? 1 : std::max<std::int64_t>(1, std::llround(static_cast<double>(from) / static_cast<double>(to)));
}

/// Sizes of y; without padding in the recording that of half a kernel.
std::vector<std::int64_t> output_sizes(const AtenTensor& x, const AtenTensor& weight, const Geometry& geometry) {
  std::vector<std::int64_t> sizes = x.sizes;
  sizes[1] = geometry.transposed ? weight.sizes[1] * std::max<std::int64_t>(1, geometry.groups) : weight.sizes[0];
  const auto bounded = [](std::int64_t side) { return std::clamp<std::int64_t>(side, kNoSize, 2 * kLargestImageSide); };
  for (std::size_t i = 2; i < sizes.size(); ++i) {
    const std::int64_t side = bounded(sizes[i]), filter = bounded(weight.sizes[i]);
    const std::int64_t stride = std::max<std::int64_t>(1, bounded(stride_of(geometry, i - 2, x, nullptr)));
    const std::int64_t window = bounded(of_dimension(geometry.dilation, i - 2, 1)) * (filter - 1) + 1;
    const std::int64_t padding = bounded(of_dimension(geometry.padding, i - 2, filter / 2));
    sizes[i] =
        geometry.transposed ? side * stride : std::max<std::int64_t>(1, (side + 2 * padding - window) / stride + 1);
  }
  return sizes;
}

std::optional<Convolution> convolution_of(const AtenTensor& x, const AtenTensor& weight, const AtenTensor* y,
                                          const Geometry& geometry, const MapContext& context) {
  if (x.sizes.size() < 3 || weight.sizes.size() != x.sizes.size()) return std::nullopt;
  if (y != nullptr && y->sizes.size() != x.sizes.size()) y = nullptr;
  const std::int64_t groups = std::max<std::int64_t>(1, geometry.groups);
  if (groups > kMostGroups) return std::nullopt;
  Convolution op;
  op.transposed = geometry.transposed;
  op.type = x.type == DType::fp32 && context.cudnn_tf32 ? DType::tf32 : x.type;
  op.channels_last = x.channels_last() || weight.channels_last();
  op.batch = x.sizes[0];
  op.groups = groups;
  op.in_channels = std::max<std::int64_t>(1, weight.sizes[1]) * groups;  // of the larger image, where transposed
  op.out_channels = weight.sizes[0];
  Sides stride{1, 1};
  for (std::size_t i = 0; i + 2 < x.sizes.size(); ++i) {
    const std::int64_t step = stride_of(geometry, i, x, y);
    if (step < 1 || step > kLargestKernelOrStride) return std::nullopt;
    (i + 3 < x.sizes.size() ? stride.rows : stride.columns) *= step;
    if (stride.rows > kLargestKernelOrStride) return std::nullopt;
  }
  const AtenTensor computed = y != nullptr ? *y : fresh(x.type, output_sizes(x, weight, geometry));
  const Sides image = sides_of(geometry.transposed ? computed : x), filter = sides_of(weight),
              output = sides_of(geometry.transposed ? x : computed);
  for (const auto& [sides, most] : {std::pair{image, kLargestImageSide}, std::pair{output, kLargestImageSide},
                                    std::pair{filter, kLargestKernelOrStride}})
    if (std::min(sides.rows, sides.columns) < 1 || std::max(sides.rows, sides.columns) > most) return std::nullopt;
  const auto unless_as = [](std::int64_t columns, std::int64_t rows) { return columns == rows ? 0 : columns; };
  op.size = image.rows, op.width = unless_as(image.columns, image.rows);
  op.kernel = filter.rows, op.kernel_width = unless_as(filter.columns, filter.rows);
  op.stride = stride.rows, op.stride_width = unless_as(stride.columns, stride.rows);
  if (op.out_rows() != output.rows || op.out_columns() != output.columns)
    op.out_size = output.rows, op.out_width = output.columns;
  if (!out_of_bounds(op).empty()) return std::nullopt;  // costed by its bytes
  return op;
}

/// The kernels that the recording names, where the replay's GPU has the same library.
void name_what_ran(Convolution& op, const AtenCall& call, const MapContext& context) {
  if (!context.same_library || !call.writes.empty()) return;
  op.ran = convolution_that_ran(call.kernels, false);
  op.ran_weights = convolution_that_ran(call.kernels, true);
}

MappedOps forward(const AtenTensor* x, const AtenTensor* weight, const AtenTensor* bias, const Geometry& geometry,
                  const AtenCall& call, const MapContext& context) {
  if (x == nullptr || weight == nullptr) return std::nullopt;
  auto op = convolution_of(*x, *weight, call.outputs.empty() ? nullptr : &call.outputs.front(), geometry, context);
  if (!op) return std::nullopt;
  name_what_ran(*op, call, context);
  op->ran_weights = {};
  AtenTensor y = fresh(x->type, output_sizes(*x, *weight, geometry));
  if (!call.outputs.empty()) y = call.outputs.front();
  std::vector<MappedOp> ops{{*op, {*x, *weight}, {y}}};
  if (bias != nullptr && !bias->sizes.empty() && !runs_pytorch_depthwise(*op)) {  // added by a kernel of its own
    AtenTensor row = *bias;
    row.sizes = {bias->elements(), 1, 1};
    row.strides.clear();
    ops.push_back(pointwise_op(PointwiseFunction::add_in_place, {&y, &row}, y));
    ops.back().forward = HostClass::python_fixed;
  }
  return ops;
}

std::int64_t whole(const AtenCall& call, std::size_t i, std::int64_t otherwise) {
  return whole_number(call.number(i).value_or(static_cast<double>(otherwise)), kNoSize);
}

MappedOps convolution(const AtenCall& call, const MapContext& context) {
  const Geometry geometry{call.numbers(3), call.numbers(4), call.numbers(5), call.number(6).value_or(0) != 0,
                          whole(call, 8, 1)};
  return forward(call.tensor(0), call.tensor(1), call.tensor(2), geometry, call, context);
}
/// (x, weight, padding, stride, dilation, groups, …); before PyTorch 1.7 with the bias behind the weight.
MappedOps cudnn_convolution(const AtenCall& call, const MapContext& context) {
  const std::size_t bias = call.numbers(2) == nullptr && call.numbers(3) != nullptr ? 1 : 0;
  const Geometry geometry{call.numbers(3 + bias), call.numbers(2 + bias), call.numbers(4 + bias), false,
                          whole(call, 5 + bias, 1)};
  return forward(call.tensor(0), call.tensor(1), nullptr, geometry, call, context);
}
MappedOps cudnn_convolution_transpose(const AtenCall& call, const MapContext& context) {
  const Geometry geometry{call.numbers(4), nullptr, nullptr, true, whole(call, 6, 1)};
  return forward(call.tensor(0), call.tensor(1), nullptr, geometry, call, context);
}

/// The gradients of input, weight and bias that are wanted.
struct WantedGradients {
  bool input = true, weight = true, bias = false;
};

MappedOps gradients(const AtenTensor* dy, const AtenTensor* x, const AtenTensor* weight, const Geometry& geometry,
                    WantedGradients wanted, const AtenCall& call, const MapContext& context) {
  if (dy == nullptr || x == nullptr || weight == nullptr) return std::nullopt;
  auto op = convolution_of(*x, *weight, dy, geometry, context);
  if (!op) return std::nullopt;
  name_what_ran(*op, call, context);
  op->backward = true;
  std::vector<MappedOp> ops;
  if (wanted.input && wanted.weight) {
    ops.push_back({*op, {*dy, *x, *weight}, {like(*x), like(*weight)}});
  } else if (wanted.input || wanted.weight) {
    op->gradients = wanted.input ? ConvolutionGradients::input : ConvolutionGradients::weight;
    ops.push_back({*op, {*dy, wanted.weight ? *x : *weight}, {wanted.weight ? like(*weight) : like(*x)}});
  }
  if (wanted.bias && dy->sizes.size() > 2) {
    const std::int64_t channels = std::max<std::int64_t>(1, dy->sizes[1]), others = dy->elements() / channels;
    const Reduction sum = dy->channels_last() ? Reduction{ReductionKind::sum_rows, dy->type, others, channels}
                                              : Reduction{ReductionKind::sum_cols, dy->type, channels, others};
    ops.push_back({sum, {*dy}, {fresh(dy->type, {channels})}, HostClass::python_fixed, HostClass::python_fixed});
  }
  return ops;
}

/// Which of two or three results a call was asked for: its last list of flags. Without it, input and weight.
WantedGradients wanted_of(const Numbers* mask, bool bias_by_default = false) {
  const auto at = [&](std::size_t i, bool otherwise) {
    return mask != nullptr && i < mask->size() ? (*mask)[i] != 0 : otherwise;
  };
  return {at(0, true), at(1, true), at(2, bias_by_default && mask == nullptr)};
}
/// Without flags the kernels may say that the gradient of the input was not asked for: all are of the weight's.
WantedGradients wanted_of(const Numbers* mask, const AtenCall& call, bool bias_by_default) {
  WantedGradients wanted = wanted_of(mask, bias_by_default);
  if (mask != nullptr) return wanted;
  bool of_weight = false, of_input = false;
  for (const MeasuredKernel& kernel : call.kernels) {
    if (kernel.name.starts_with("Mem")) continue;
    const bool weight = kernel.name.find("wgrad") != kernel.name.npos || kernel.name.find("Wgrad") != kernel.name.npos;
    of_weight = of_weight || weight;
    of_input = of_input || !weight;
  }
  if (of_weight && !of_input) wanted.input = false;
  return wanted;
}
const Numbers* last_list(const AtenCall& call) {
  for (std::size_t i = call.inputs.size(); i-- > 0;)
    if (const Numbers* list = call.numbers(i)) return list;
  return nullptr;
}

MappedOps convolution_backward(const AtenCall& call, const MapContext& context) {
  const Geometry geometry{call.numbers(4), call.numbers(5), call.numbers(6), call.number(7).value_or(0) != 0,
                          whole(call, 9, 1)};
  return gradients(call.tensor(0), call.tensor(1), call.tensor(2), geometry, wanted_of(call.numbers(10), call, true),
                   call, context);
}

// The names of PyTorch up to 1.10.

/// (x, dy, weight, padding, [output padding], stride, dilation, groups, …, mask).
template <bool Transposed>
MappedOps cudnn_backward(const AtenCall& call, const MapContext& context) {
  constexpr std::size_t kStride = Transposed ? 5 : 4;
  const Geometry geometry{call.numbers(kStride), nullptr, nullptr, Transposed, whole(call, kStride + 2, 1)};
  const Numbers* flags = last_list(call);
  const bool is_mask = flags != nullptr && flags != geometry.stride && call.number(kStride + 2).has_value() &&
                       call.numbers(call.inputs.size() - 1) == flags;
  return gradients(call.tensor(1), call.tensor(0), call.tensor(2), geometry,
                   wanted_of(is_mask ? flags : nullptr, call, false), call, context);
}
/// (sizes of the weight, dy, x, padding, stride, dilation, groups, …) and (sizes of x, dy, weight, …).
template <bool OfWeight>
MappedOps cudnn_gradient(const AtenCall& call, const MapContext& context) {
  const Numbers* sizes = call.numbers(0);
  const AtenTensor *dy = call.tensor(1), *other = call.tensor(2);
  if (sizes == nullptr || sizes->empty() || dy == nullptr || other == nullptr) return std::nullopt;
  AtenTensor result = fresh(other->type, {});
  for (const double size : *sizes) result.sizes.push_back(whole_number(size, kNoSize));
  const Geometry geometry{call.numbers(4), nullptr, nullptr, false, whole(call, 6, 1)};
  return gradients(dy, OfWeight ? other : &result, OfWeight ? &result : other, geometry,
                   {.input = !OfWeight, .weight = OfWeight}, call, context);
}
/// (x, weight, kernel size, bias, stride, padding, …): a product of unfolded images.
MappedOps unfolded_convolution(const AtenCall& call, const MapContext& context) {
  return forward(call.tensor(0), call.tensor(1), call.tensor(3), {call.numbers(4)}, call, context);
}
/// (dy, x, weight, kernel size, stride, padding, …, mask).
MappedOps unfolded_backward(const AtenCall& call, const MapContext& context) {
  const Numbers* flags = last_list(call);
  const bool is_mask = flags != nullptr && call.inputs.size() > 6 && call.numbers(call.inputs.size() - 1) == flags;
  return gradients(call.tensor(0), call.tensor(1), call.tensor(2), {call.numbers(4)},
                   wanted_of(is_mask ? flags : nullptr), call, context);
}
/// Each channel by itself.
MappedOps depthwise(const AtenCall& call, const MapContext& context) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->sizes.size() < 3) return std::nullopt;
  return forward(x, call.tensor(1), call.tensor(3), {call.numbers(4), call.numbers(5), nullptr, false, x->sizes[1]},
                 call, context);
}
MappedOps depthwise_backward(const AtenCall& call, const MapContext& context) {
  const AtenTensor* x = call.tensor(1);
  if (x == nullptr || x->sizes.size() < 3) return std::nullopt;
  const Numbers* flags = last_list(call);
  const bool is_mask = flags != nullptr && call.inputs.size() > 7 && call.numbers(call.inputs.size() - 1) == flags;
  return gradients(call.tensor(0), x, call.tensor(2), {call.numbers(4), nullptr, nullptr, false, x->sizes[1]},
                   wanted_of(is_mask ? flags : nullptr), call, context);
}

}  // namespace

void add_convolution_rules(RuleTable& table) {
  add(table, "aten::convolution aten::convolution_overrideable", convolution);
  add(table, "aten::cudnn_convolution", cudnn_convolution);
  add(table, "aten::cudnn_convolution_transpose", cudnn_convolution_transpose);
  add(table, "aten::convolution_backward aten::convolution_backward_overrideable", convolution_backward);
  add(table, "aten::cudnn_convolution_backward", cudnn_backward<false>);
  add(table, "aten::cudnn_convolution_transpose_backward", cudnn_backward<true>);
  add(table, "aten::cudnn_convolution_backward_weight", cudnn_gradient<true>);
  add(table, "aten::cudnn_convolution_backward_input", cudnn_gradient<false>);
  add(table, "aten::thnn_conv2d_forward aten::_slow_conv2d_forward", unfolded_convolution);
  add(table, "aten::thnn_conv2d_backward aten::_slow_conv2d_backward", unfolded_backward);
  add(table, "aten::thnn_conv_depthwise2d_forward aten::_conv_depthwise2d", depthwise);
  add(table, "aten::thnn_conv_depthwise2d_backward aten::_conv_depthwise2d_backward", depthwise_backward);
}

}  // namespace ridgeline::trace

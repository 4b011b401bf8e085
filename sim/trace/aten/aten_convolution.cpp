// Convolutions and the other operations of image networks.
//
// Our convolution has square images and kernels and no groups: sides are geometric means, groups divide the channels. A
// transposed convolution is the mirror image of a plain one: its forward pass does what the plain one's input gradient
// does, with as many FLOPs as the plain forward pass.
#include <algorithm>
#include <cmath>

#include "sim/trace/aten/aten_rules.h"
#include "sim/trace/profiler/library_kernel.h"
#include "sim/workload/convolution_bounds.h"

namespace ridgeline::trace {
namespace {

std::int64_t side(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(a) * static_cast<double>(b))));
}

/// One- and three-dimensional images are seen as planes of as many pixels.
std::int64_t side_of_image(const AtenTensor& x) {
  double pixels = 1.0;
  for (std::size_t i = 2; i < x.sizes.size(); ++i) pixels *= static_cast<double>(x.sizes[i]);
  return std::max<std::int64_t>(1, std::llround(std::sqrt(std::max(0.0, pixels))));
}

constexpr std::int64_t kNoSize = -1;  ///< what no bound lets pass

struct Geometry {
  const Numbers* stride = nullptr;
  bool transposed = false;
  std::int64_t groups = 1;
};

/// As recorded; where it is not, as many times as the sides of the image and of `y` (null: not known either) say.
std::int64_t stride_of(const Geometry& geometry, const AtenTensor& x, const AtenTensor* y) {
  if (geometry.stride != nullptr && !geometry.stride->empty()) return whole_number(geometry.stride->back(), kNoSize);
  if (y == nullptr || y->sizes.size() != x.sizes.size()) return 1;
  const std::int64_t from = geometry.transposed ? y->last() : x.last(), to = geometry.transposed ? x.last() : y->last();
  return to < 1 ? 1 : std::max<std::int64_t>(1, std::llround(static_cast<double>(from) / static_cast<double>(to)));
}

std::optional<Convolution> convolution_of(const AtenTensor& x, const AtenTensor& weight, const AtenTensor* y,
                                          const Geometry& geometry, const MapContext& context) {
  if (x.sizes.size() < 3 || weight.sizes.size() != x.sizes.size()) return std::nullopt;
  Convolution op;
  op.type = x.type == DType::fp32 && context.cudnn_tf32 ? DType::tf32 : x.type;
  op.channels_last = x.channels_last() || weight.channels_last();
  op.batch = x.sizes[0];
  op.kernel = weight.sizes.size() == 3 ? weight.last() : side(weight.last(), weight.last(1));
  op.stride = stride_of(geometry, x, y);
  const std::int64_t groups = std::max<std::int64_t>(1, geometry.groups);
  if (op.stride < 1 || op.stride > kLargestKernelOrStride || groups > kLargestImageSide) return std::nullopt;
  op.size = side_of_image(x);
  op.in_channels = std::max<std::int64_t>(1, weight.sizes[1]);
  op.out_channels = weight.sizes[0];
  if (geometry.transposed) {  // weight: [in, out / groups, kernel, kernel]; seen from the larger image
    op.size *= op.stride;
  } else if (groups > 1) {
    op.out_channels = weight.sizes[0] / groups;
    op.batch *= groups;
  }
  if (!out_of_bounds(op).empty()) return std::nullopt;  // costed by its bytes
  return op;
}

std::vector<std::int64_t> output_sizes(const AtenTensor& x, const AtenTensor& weight, const Geometry& geometry) {
  std::vector<std::int64_t> sizes = x.sizes;
  sizes[1] = geometry.transposed ? weight.sizes[1] * std::max<std::int64_t>(1, geometry.groups) : weight.sizes[0];
  for (std::size_t i = 2; i < sizes.size(); ++i) {
    const std::int64_t stride = std::max<std::int64_t>(1, stride_of(geometry, x, nullptr));
    sizes[i] = geometry.transposed ? sizes[i] * stride : (sizes[i] + stride - 1) / stride;
  }
  return sizes;
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
  std::vector<MappedOp> ops{{*op, {*x, *weight}, {y}, HostClass::convolution, HostClass::convolution_backward}};
  if (bias != nullptr && !bias->sizes.empty()) {  // added by a kernel of its own
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
  const Geometry geometry{call.numbers(3), call.number(6).value_or(0) != 0, whole(call, 8, 1)};
  return forward(call.tensor(0), call.tensor(1), call.tensor(2), geometry, call, context);
}
/// (x, weight, padding, stride, dilation, groups, …); before PyTorch 1.7 with the bias behind the weight.
MappedOps cudnn_convolution(const AtenCall& call, const MapContext& context) {
  const std::size_t bias = call.numbers(2) == nullptr && call.numbers(3) != nullptr ? 1 : 0;
  const Geometry geometry{call.numbers(3 + bias), false, whole(call, 5 + bias, 1)};
  return forward(call.tensor(0), call.tensor(1), nullptr, geometry, call, context);
}
MappedOps cudnn_convolution_transpose(const AtenCall& call, const MapContext& context) {
  const Geometry geometry{call.numbers(4), true, whole(call, 6, 1)};
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
  if (!wanted.input && wanted.weight) op->ran = op->ran_weights;
  std::vector<MappedOp> ops;
  if (wanted.input && wanted.weight) {
    op->backward = true;
    ops.push_back({*op,
                   {*dy, *x, *weight},
                   {like(*x), like(*weight)},
                   HostClass::convolution_backward,
                   HostClass::convolution_backward});
  } else if (wanted.input || wanted.weight) {  // one of two gradients: as many FLOPs as the forward pass
    ops.push_back({*op,
                   {*dy, wanted.weight ? *x : *weight},
                   {wanted.weight ? like(*weight) : like(*x)},
                   HostClass::convolution_backward,
                   HostClass::convolution_backward});
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
  const Geometry geometry{call.numbers(4), call.number(7).value_or(0) != 0, whole(call, 9, 1)};
  return gradients(call.tensor(0), call.tensor(1), call.tensor(2), geometry, wanted_of(call.numbers(10), call, true),
                   call, context);
}

// The names of PyTorch up to 1.10.

/// (x, dy, weight, padding, [output padding], stride, dilation, groups, …, mask).
template <bool Transposed>
MappedOps cudnn_backward(const AtenCall& call, const MapContext& context) {
  constexpr std::size_t kStride = Transposed ? 5 : 4;
  const Geometry geometry{call.numbers(kStride), Transposed, whole(call, kStride + 2, 1)};
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
  const Geometry geometry{call.numbers(4), false, whole(call, 6, 1)};
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
  return forward(x, call.tensor(1), call.tensor(3), {call.numbers(4), false, x->sizes[1]}, call, context);
}
MappedOps depthwise_backward(const AtenCall& call, const MapContext& context) {
  const AtenTensor* x = call.tensor(1);
  if (x == nullptr || x->sizes.size() < 3) return std::nullopt;
  const Numbers* flags = last_list(call);
  const bool is_mask = flags != nullptr && call.inputs.size() > 7 && call.numbers(call.inputs.size() - 1) == flags;
  return gradients(call.tensor(0), x, call.tensor(2), {call.numbers(4), false, x->sizes[1]},
                   wanted_of(is_mask ? flags : nullptr), call, context);
}

MappedOps image(ImageFunction function, bool backward, const AtenTensor& x, std::vector<AtenTensor> inputs,
                AtenTensor output, HostClass host) {
  ImageOp op{.function = function, .backward = backward, .channels_last = x.channels_last(), .type = x.type};
  if (x.sizes.size() < 2 || x.elements() < 1) return std::nullopt;
  op.batch = x.sizes[0];
  op.channels = x.sizes[1];
  op.size = x.sizes.size() > 2 ? side_of_image(x) : 1;
  return one({op, std::move(inputs), {std::move(output)}, host, host});
}

template <std::size_t Input>
MappedOps batch_norm(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(Input);
  if (x == nullptr) return std::nullopt;
  return image(ImageFunction::batch_norm, false, *x, {*x}, result_of(call, 0, like(*x)), HostClass::batch_norm);
}
template <std::size_t Gradient, std::size_t Input>
MappedOps batch_norm_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(Gradient), *x = call.tensor(Input);
  if (dy == nullptr || x == nullptr) return std::nullopt;
  return image(ImageFunction::batch_norm, true, *x, {*dy, *x}, result_of(call, 0, like(*x)),
               HostClass::batch_norm_backward);
}
MappedOps max_pool(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr || x->sizes.size() < 4) return std::nullopt;
  AtenTensor y = fresh(x->type, x->sizes);
  for (std::size_t i = 2; i < y.sizes.size(); ++i) y.sizes[i] = std::max<std::int64_t>(1, y.sizes[i] / 2);
  return image(ImageFunction::max_pool2d, false, *x, {*x}, result_of(call, 0, y), HostClass::pointwise);
}
MappedOps max_pool_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(0), *x = call.tensor(1);
  if (dy == nullptr || x == nullptr || x->sizes.size() < 4) return std::nullopt;
  return image(ImageFunction::max_pool2d, true, *x, {*dy, *x}, result_of(call, 0, like(*x)),
               HostClass::pointwise_backward);
}
/// The larger image is the result; its sizes are the second argument.
MappedOps upsample(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  const Numbers* sizes = call.numbers(1);
  if (x == nullptr || x->sizes.size() != 4 || (call.outputs.empty() && (sizes == nullptr || sizes->size() < 2)))
    return std::nullopt;
  AtenTensor y = like(*x);
  y.strides.clear();
  if (!call.outputs.empty()) y = call.outputs.front();
  else
    for (std::size_t i = 0; i < 2; ++i) y.sizes[2 + i] = whole_number((*sizes)[i], kNoSize);
  return image(ImageFunction::upsample_nearest2d, false, y, {*x}, y, HostClass::pointwise);
}
MappedOps upsample_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor* dy = call.tensor(0);
  const Numbers* sizes = call.numbers(2);
  if (dy == nullptr || dy->sizes.size() != 4 || (call.outputs.empty() && (sizes == nullptr || sizes->size() != 4)))
    return std::nullopt;
  AtenTensor dx = fresh(dy->type, {});
  if (!call.outputs.empty()) dx = call.outputs.front();
  else
    for (const double size : *sizes) dx.sizes.push_back(whole_number(size, kNoSize));
  return image(ImageFunction::upsample_nearest2d, true, *dy, {*dy}, dx, HostClass::pointwise_backward);
}

}  // namespace

void add_convolution_rules(RuleTable& table) {
  table.insert({{"aten::convolution", convolution},
                {"aten::convolution_overrideable", convolution},
                {"aten::cudnn_convolution", cudnn_convolution},
                {"aten::cudnn_convolution_transpose", cudnn_convolution_transpose},
                {"aten::convolution_backward", convolution_backward},
                {"aten::convolution_backward_overrideable", convolution_backward},
                {"aten::cudnn_convolution_backward", cudnn_backward<false>},
                {"aten::cudnn_convolution_transpose_backward", cudnn_backward<true>},
                {"aten::cudnn_convolution_backward_weight", cudnn_gradient<true>},
                {"aten::cudnn_convolution_backward_input", cudnn_gradient<false>},
                {"aten::thnn_conv2d_forward", unfolded_convolution},
                {"aten::_slow_conv2d_forward", unfolded_convolution},
                {"aten::thnn_conv2d_backward", unfolded_backward},
                {"aten::_slow_conv2d_backward", unfolded_backward},
                {"aten::thnn_conv_depthwise2d_forward", depthwise},
                {"aten::_conv_depthwise2d", depthwise},
                {"aten::thnn_conv_depthwise2d_backward", depthwise_backward},
                {"aten::_conv_depthwise2d_backward", depthwise_backward},
                {"aten::cudnn_batch_norm", batch_norm<0>},
                {"aten::native_batch_norm", batch_norm<0>},
                {"aten::_native_batch_norm_legit", batch_norm<0>},
                {"aten::_batch_norm_with_update", batch_norm<0>},
                {"aten::miopen_batch_norm", batch_norm<0>},
                {"aten::cudnn_batch_norm_backward", batch_norm_backward<1, 0>},
                {"aten::native_batch_norm_backward", batch_norm_backward<0, 1>},
                {"aten::batch_norm_backward", batch_norm_backward<0, 1>},
                {"aten::max_pool2d_with_indices", max_pool},
                {"aten::max_pool2d_with_indices_backward", max_pool_backward},
                {"aten::upsample_nearest2d", upsample},
                {"aten::upsample_bilinear2d", upsample},
                {"aten::upsample_nearest2d_backward", upsample_backward},
                {"aten::upsample_bilinear2d_backward", upsample_backward}});
}

}  // namespace ridgeline::trace

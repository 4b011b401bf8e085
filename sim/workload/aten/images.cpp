#include "sim/workload/aten/images.h"

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/regroup.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/eager/function_node.h"

namespace ridgeline::eager::aten {
namespace {

ImageOp image_op(ImageFunction function, const Tensor& x) {
  ImageOp op{.function = function, .channels_last = lies_channels_last(x), .type = x.type};
  op.batch = x.sizes[0];
  op.channels = x.sizes[1];
  op.size = x.sizes.rank() > 3 ? x.sizes[2] : 1;
  const std::int64_t width = x.sizes.rank() > 2 ? x.sizes.last() : 1;
  op.width = width == op.size ? 0 : width;
  return op;
}

struct BatchNormBackward final : Node {
  BatchNormBackward() : Node(HostClass::batch_norm_backward) {}
  ImageOp op;
  SavedTensor input, weight, mean, deviation;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor x = input.unpack(eager), w = weight.unpack(eager);
    const Tensor gradient = op.channels_last ? channels_last(eager, in[0]) : contiguous(eager, in[0]);
    out[0] = eager.empty_like(x);
    out[1] = eager.empty_like(w);
    out[2] = eager.empty_like(w);
    eager.recorder.op(op, {&gradient, &x}, {&out[0]});
  }
  void release() override {
    input.release();
    weight.release();
    mean.release();
    deviation.release();
  }
};

struct GroupNormBackward final : Node {
  GroupNormBackward() : Node(HostClass::layer_norm_backward) {}
  std::int64_t groups = 1;
  SavedTensor input, weight, mean, deviation;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor x = input.unpack(eager), w = weight.unpack(eager);
    const Tensor gradient = contiguous(eager, in[0]);
    const std::int64_t images = x.sizes[0], planes = images * x.sizes[1], pixels = x.elements() / planes;
    out[0] = eager.empty_like(x);
    const Tensor sums = eager.empty({planes, 1}, DType::fp32), products = eager.empty({planes, 1}, DType::fp32),
                 of_groups = eager.empty({images * groups, 1}, DType::fp32);
    eager.recorder.op(Reduction{ReductionKind::sum_cols, x.type, planes, 2 * pixels, Accumulator::groups}, {&gradient},
                      {&sums});
    pointwise(eager, PointwiseFunction::mul, {&sums, &products}, products);
    pointwise(eager, PointwiseFunction::mul, {&of_groups, &of_groups}, of_groups);
    Tensor flat = out[0], given = gradient, same = x;
    for (Tensor* one : {&flat, &given, &same}) {
      one->sizes = {planes, pixels};
      one->strides = contiguous_strides(one->sizes);
    }
    pointwise(eager, PointwiseFunction::add, {&given, &same, &products}, flat);
    out[1] = eager.empty_like(w);
    out[2] = eager.empty_like(w);
    eager.recorder.op(Reduction{ReductionKind::sum_rows, DType::fp32, images, x.sizes[1]}, {&sums}, {&out[1]});
  }
  void release() override {
    input.release();
    weight.release();
    mean.release();
    deviation.release();
  }
};

struct WeightNormBackward final : Node {
  WeightNormBackward() : Node(HostClass::pointwise_backward) {}
  SavedTensor norms, g, v;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor lengths = norms.unpack(eager), scales = g.unpack(eager), directions = v.unpack(eager);
    out[0] = eager.empty_like(directions);
    out[1] = eager.empty_like(scales);
    pointwise(eager, PointwiseFunction::other, {&in[0], &directions, &scales}, out[0]);
  }
  void release() override {
    norms.release();
    g.release();
    v.release();
  }
};

struct ReluInPlaceBackward final : Node {
  ReluInPlaceBackward() : Node(HostClass::pointwise_backward) {}
  SavedTensor result;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor y = result.unpack(eager);
    out[0] = eager.empty_like(in[0]);
    pointwise(eager, PointwiseFunction::relu_backward, {&in[0], &y}, out[0]);
  }
  void release() override { result.release(); }
};

struct UnbindBackward final : Node {
  UnbindBackward() : Node(HostClass::split_backward) {}
  Dims sizes;
  DType type = DType::fp32;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const auto parts = static_cast<int>(sizes[0]);
    bool strided = false;
    for (int i = 0; i < parts; ++i) {
      Tensor& part = in[static_cast<std::size_t>(i)];
      if (!part.defined()) part = full(eager, output_sizes, type);
      strided = strided || !part.contiguous();
    }
    out[0] = eager.empty(sizes, type);
    const Copy op{strided ? CopyKind::concatenate_strided : CopyKind::concatenate, type, sizes[1],
                  sizes.product() / sizes[0] / sizes[1], parts};
    if (parts == 2) eager.recorder.op(op, {&in[0], &in[1]}, {&out[0]});
    else eager.recorder.op(op, {&in[0], &in[1], &in[2]}, {&out[0]});
  }
};

/// Of pooling: the gradient of a window's result goes to its pixels.
struct PoolBackward final : Node {
  PoolBackward() : Node(HostClass::pointwise_backward) {}
  ImageOp op;
  SavedTensor indices, self;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor x = self.unpack(eager), places = indices.defined() ? indices.unpack(eager) : Tensor{};
    const Tensor gradient = op.channels_last ? channels_last(eager, in[0]) : contiguous(eager, in[0]);
    out[0] = eager.empty_like(x);
    eager.recorder.op(op, {&gradient, &x}, {&out[0]});
  }
  void release() override {
    indices.release();
    self.release();
  }
};

struct UpsampleBackward final : Node {
  UpsampleBackward() : Node(HostClass::pointwise_backward) {}
  ImageOp op;
  Dims sizes;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor gradient = op.channels_last ? channels_last(eager, in[0]) : contiguous(eager, in[0]);
    out[0] = op.channels_last ? eager.empty(sizes, channels_last_strides(sizes), in[0].type)
                              : eager.empty(sizes, in[0].type);
    eager.recorder.op(op, {&gradient}, {&out[0]});
  }
};

struct MeanTrailingBackward final : Node {
  MeanTrailingBackward() : Node(HostClass::pointwise_backward) {}
  Dims sizes, kept;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor spread = expand(eager, reshape(eager, in[0], kept), sizes);
    out[0] = eager.empty(sizes, in[0].type);
    pointwise(eager, PointwiseFunction::divide, {&spread}, out[0]);
  }
};

Tensor pooled(Eager& eager, const Tensor& given, const PoolingSteps& steps, ImageFunction function) {
  const Tensor x = lies_channels_last(given) ? given : contiguous(eager, given);
  PoolBackward* node = eager.needs_node({&x}) ? &eager.node<PoolBackward>({&x}) : nullptr;
  if (node != nullptr) node->self = eager.save(x);
  ImageOp op = image_op(function, x);
  op.window = steps.window;
  op.stride = steps.stride;
  const auto side = [&](std::int64_t size) { return (size + 2 * steps.padding - steps.window) / steps.stride + 1; };
  const Dims sizes{x.sizes[0], x.sizes[1], side(x.sizes[2]), side(x.sizes[3])};
  op.out_size = sizes[2], op.out_width = sizes[3];
  Tensor result =
      op.channels_last ? eager.empty(sizes, channels_last_strides(sizes), x.type) : eager.empty(sizes, x.type);
  const Tensor indices =
      function == ImageFunction::max_pool2d ? eager.empty(sizes, result.strides, DType::int64) : Tensor{};
  eager.recorder.op(op, {&x}, {&result});
  if (node != nullptr) {
    if (indices.defined()) node->indices = eager.save(indices);
    node->op = op;
    node->op.backward = true;
    Eager::attach(result, *node);
  }
  return result;
}

}  // namespace

Dims channels_last_strides(const Dims& sizes) {
  const std::int64_t channels = sizes[1];
  return {sizes.product() / sizes[0], 1, channels * sizes[3], channels};
}

bool lies_channels_last(const Tensor& x) {
  return x.sizes.rank() == 4 && x.sizes[1] > 1 && x.sizes[2] * x.sizes[3] > 1 && !x.contiguous() &&
         x.strides == channels_last_strides(x.sizes);
}

Tensor channels_last(Eager& eager, const Tensor& x) {
  const Dims strides = channels_last_strides(x.sizes);
  if (x.strides == strides) return x;
  const Tensor result = eager.empty(x.sizes, strides, x.type);
  eager.recorder.op(Copy{CopyKind::transpose, x.type, x.elements() / x.sizes[1], x.sizes[1], 1}, {&x}, {&result});
  return result;
}

Tensor batch_norm(Eager& eager, const Tensor& given, const Tensor& weight, const Tensor& bias, bool evaluation) {
  const Tensor x = lies_channels_last(given) ? given : contiguous(eager, given);
  BatchNormBackward* node =
      eager.needs_node({&x, &weight, &bias}) ? &eager.node<BatchNormBackward>({&x, &weight, &bias}) : nullptr;
  if (node != nullptr) {
    node->input = eager.save(x);
    node->weight = eager.save(weight);
  }
  ImageOp op = image_op(ImageFunction::batch_norm, x);
  op.evaluation = evaluation;
  Tensor result = eager.empty_like(x);
  Tensor mean, deviation;  // of the batch
  if (!evaluation) {
    mean = eager.empty({x.sizes[1]}, DType::fp32);
    deviation = eager.empty({x.sizes[1]}, DType::fp32);
  }
  eager.recorder.op(op, {&x}, {&result});
  if (node != nullptr) {
    if (mean.defined()) node->mean = eager.save(mean);
    if (deviation.defined()) node->deviation = eager.save(deviation);
    node->op = op;
    node->op.backward = true;
    Eager::attach(result, *node);
  }
  return result;
}

Tensor group_norm(Eager& eager, const Tensor& given, const Tensor& weight, const Tensor& bias, std::int64_t groups) {
  const Tensor x = contiguous(eager, given);
  GroupNormBackward* node =
      eager.needs_node({&x, &weight, &bias}) ? &eager.node<GroupNormBackward>({&x, &weight, &bias}) : nullptr;
  if (node != nullptr) {
    node->groups = groups;
    node->input = eager.save(x);
    node->weight = eager.save(weight);
  }
  const std::int64_t rows = x.sizes[0] * groups, planes = x.sizes[0] * x.sizes[1];
  Tensor result = eager.empty(x.sizes, x.type);
  const Tensor mean = eager.empty({rows}, x.type), deviation = eager.empty({rows}, x.type);
  {
    const Tensor factors = eager.empty({planes, 1}, DType::fp32), shifts = eager.empty({planes, 1}, DType::fp32);
    eager.recorder.op(Reduction{ReductionKind::mean_cols, x.type, rows, x.elements() / rows, Accumulator::groups}, {&x},
                      {&mean});
    pointwise(eager, PointwiseFunction::mul, {&factors, &shifts}, shifts);
    Tensor flat = result, same = x;
    for (Tensor* one : {&flat, &same}) {
      one->sizes = {planes, x.elements() / planes};
      one->strides = contiguous_strides(one->sizes);
    }
    pointwise(eager, PointwiseFunction::add, {&same, &shifts}, flat);
  }
  if (node != nullptr) {
    node->mean = eager.save(mean);
    node->deviation = eager.save(deviation);
    Eager::attach(result, *node);
  }
  return result;
}

Tensor weight_norm(Eager& eager, const Tensor& v, const Tensor& g) {
  WeightNormBackward* node = eager.needs_node({&v, &g}) ? &eager.node<WeightNormBackward>({&v, &g}) : nullptr;
  Tensor result = eager.empty_like(v);
  const Tensor norms = eager.empty_like(g, DType::fp32);
  pointwise(eager, PointwiseFunction::other, {&v, &g}, result);
  if (node != nullptr) {
    node->v = eager.save(v);
    node->g = eager.save(g);
    node->norms = eager.save(norms);
    Eager::attach(result, *node);
  }
  return result;
}

Tensor relu_in_place(Eager& eager, Tensor x) {
  ReluInPlaceBackward* node = eager.needs_node({&x}) ? &eager.node<ReluInPlaceBackward>({&x}) : nullptr;
  pointwise(eager, PointwiseFunction::relu, {&x}, x);
  if (node != nullptr) {
    node->result = eager.save(x);
    Eager::attach(x, *node);
  }
  return x;
}

std::vector<Tensor> unbind(Eager& eager, const Tensor& x) {
  UnbindBackward* node = eager.needs_node({&x}) ? &eager.node<UnbindBackward>({&x}) : nullptr;
  if (node != nullptr) {
    node->sizes = x.sizes;
    node->type = x.type;
  }
  Tensor part = x.detached();
  part.view = true;
  part.sizes = part.strides = Dims{};
  for (int i = 1; i < x.sizes.rank(); ++i) {
    part.sizes.push_back(x.sizes[i]);
    part.strides.push_back(x.strides[i]);
  }
  std::vector<Tensor> parts(static_cast<std::size_t>(x.sizes[0]), part);
  for (std::size_t i = 0; node != nullptr && i < parts.size(); ++i) Eager::attach(parts[i], *node, static_cast<int>(i));
  return parts;
}

Tensor max_pool(Eager& eager, const Tensor& x, const PoolingSteps& steps) {
  return pooled(eager, x, steps, ImageFunction::max_pool2d);
}
Tensor average_pool(Eager& eager, const Tensor& x, const PoolingSteps& steps) {
  return pooled(eager, x, steps, ImageFunction::avg_pool2d);
}

Tensor upsampled_bilinear(Eager& eager, const Tensor& given, std::int64_t height, std::int64_t width) {
  const Tensor wide = eager.autocast.on() ? to(eager, given, DType::fp32) : given;  // one of autocast's fp32 operations
  if (height == wide.sizes[2] && width == wide.sizes[3]) return copied(eager, wide);
  const bool last = lies_channels_last(wide);
  const Tensor x = last ? wide : contiguous(eager, wide);
  Resampling op;
  op.type = x.type;
  op.batch = x.sizes[0];
  op.channels = x.sizes[1];
  op.inputs = x.sizes[2] * x.sizes[3];
  op.outputs = height * width;
  auto* const node = node_for<0>(eager, {&x}, HostClass::pointwise_backward, [op, sizes = x.sizes](auto& pass) {
    Resampling back = op;
    back.backward = true;
    pass.out[0] = full(pass.eager, sizes, op.type);  // gradients are added atomically
    pass.eager.recorder.op(back, {&pass.in[0]}, {&pass.out[0]});
  });
  const Dims sizes{x.sizes[0], x.sizes[1], height, width};
  Tensor result = last ? eager.empty(sizes, channels_last_strides(sizes), x.type) : eager.empty(sizes, x.type);
  eager.recorder.op(op, {&x}, {&result});
  attach(result, node);
  return result;
}

Tensor upsampled_nearest(Eager& eager, const Tensor& given) {
  const Tensor x = lies_channels_last(given) ? given : contiguous(eager, given);
  UpsampleBackward* node = eager.needs_node({&x}) ? &eager.node<UpsampleBackward>({&x}) : nullptr;
  // The operation counts the larger image's pixels.
  ImageOp op = image_op(ImageFunction::upsample_nearest2d, x);
  const Dims sizes{x.sizes[0], x.sizes[1], 2 * x.sizes[2], 2 * x.sizes[3]};
  op.size *= 2;
  op.width *= 2;
  Tensor result =
      op.channels_last ? eager.empty(sizes, channels_last_strides(sizes), x.type) : eager.empty(sizes, x.type);
  eager.recorder.op(op, {&x}, {&result});
  if (node != nullptr) {
    node->op = op;
    node->op.backward = true;
    node->sizes = x.sizes;
    Eager::attach(result, *node);
  }
  return result;
}

Tensor mean_trailing(Eager& eager, const Tensor& x, int count, bool kept) {
  MeanTrailingBackward* node = eager.needs_node({&x}) ? &eager.node<MeanTrailingBackward>({&x}) : nullptr;
  Dims sizes, with_ones;
  std::int64_t cols = 1;
  for (int i = 0; i < x.sizes.rank(); ++i) {
    const bool averaged = i >= x.sizes.rank() - count;
    if (averaged) cols *= x.sizes[i];
    else sizes.push_back(x.sizes[i]);
    with_ones.push_back(averaged ? 1 : x.sizes[i]);
  }
  Tensor result = eager.empty(kept ? with_ones : sizes, x.type);
  const bool by_rows = lies_channels_last(x);
  eager.recorder.op(by_rows ? Reduction{ReductionKind::sum_rows, x.type, cols * x.sizes[0], x.sizes[1]}
                            : Reduction{ReductionKind::mean_cols, x.type, x.elements() / cols, cols},
                    {&x}, {&result});
  if (node != nullptr) {
    node->sizes = x.sizes;
    node->kept = with_ones;
    Eager::attach(result, *node);
  }
  return result;
}

}  // namespace ridgeline::eager::aten

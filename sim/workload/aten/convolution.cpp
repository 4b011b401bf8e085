#include "sim/workload/aten/convolution.h"

#include "sim/workload/aten/images.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/reduction.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/depthwise.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

struct ConvolutionBackward final : Node {
  ConvolutionBackward() : Node(HostClass::convolution_backward) {}
  Convolution op;
  Dims row;  ///< of the bias
  SavedTensor input, weight;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor x = input.unpack(eager), w = weight.unpack(eager);
    const Tensor gradient = op.channels_last ? channels_last(eager, in[0]) : contiguous(eager, in[0]);
    if (needs(0)) out[0] = eager.empty_like(x);
    if (needs(1)) out[1] = eager.empty(w.sizes, w.type);
    if (needs(0) && needs(1)) {
      eager.recorder.op(op, {&gradient, &x, &w}, {&out[0], &out[1]});
    } else if (needs(0)) {
      op.gradients = ConvolutionGradients::input;
      eager.recorder.op(op, {&gradient, &w}, {&out[0]});
    } else if (needs(1)) {
      op.gradients = ConvolutionGradients::weight;
      eager.recorder.op(op, {&gradient, &x}, {&out[1]});
    }
    if (edge_count < 3 || !needs(2)) return;
    const std::int64_t filters = w.sizes[0];
    out[2] = eager.empty({filters}, x.type);
    const std::int64_t pixels = gradient.elements() / filters;
    eager.recorder.op(op.channels_last ? Reduction{ReductionKind::sum_rows, x.type, pixels, filters}
                                       : Reduction{ReductionKind::sum_cols, x.type, filters, pixels},
                      {&gradient}, {&out[2]});
  }
  void release() override {
    input.release();
    weight.release();
  }
};

Tensor convolved(Eager& eager, const Tensor& x, const Tensor& kernel, const Tensor& bias, Convolution op,
                 const Dims& sizes) {
  ConvolutionBackward* node = nullptr;
  if (bias.defined() && eager.needs_node({&x, &kernel, &bias}))
    node = &eager.node<ConvolutionBackward>({&x, &kernel, &bias});
  if (!bias.defined() && eager.needs_node({&x, &kernel})) node = &eager.node<ConvolutionBackward>({&x, &kernel});
  if (node != nullptr) {
    node->input = eager.save(x);
    node->weight = eager.save(kernel);
    node->op = op;
    node->op.backward = true;
  }
  Tensor result =
      op.channels_last ? eager.empty(sizes, channels_last_strides(sizes), x.type) : eager.empty(sizes, x.type);
  eager.recorder.op(op, {&x, &kernel}, {&result});
  if (bias.defined() && !runs_pytorch_depthwise(op)) {
    Tensor row = bias;  // a number of each channel
    for (int i = 2; i < sizes.rank(); ++i) {
      row.sizes.push_back(1);
      row.strides.push_back(1);
    }
    pointwise(eager, PointwiseFunction::add_in_place, {&result, &row}, result);
  }
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

}  // namespace

Tensor patches(Eager& eager, const Tensor& pixels, const Tensor& kernel, const Tensor& bias, std::int64_t patch) {
  Convolution op;
  op.type = eager.convolution_type(pixels.type);
  op.batch = pixels.sizes[0];
  op.in_channels = pixels.sizes[1];
  op.size = pixels.sizes[2];
  op.out_channels = kernel.sizes[0];
  op.kernel = op.stride = patch;
  const std::int64_t side = op.size / patch;
  if (side != op.out_rows()) op.out_size = side;  // no padding
  return convolved(eager, pixels, kernel, bias, op, {op.batch, op.out_channels, side, side});
}

Tensor convolution_over_time(Eager& eager, const Tensor& x, const Tensor& kernel, const Tensor& bias,
                             std::int64_t stride) {
  Convolution op;
  op.type = eager.convolution_type(x.type);
  op.batch = x.sizes[0];
  op.in_channels = x.sizes[1];
  op.size = op.kernel = op.stride = 1;  // a row of frames
  op.width = x.sizes[2];
  op.out_channels = kernel.sizes[0];
  op.kernel_width = kernel.sizes[2];
  op.stride_width = stride;
  return convolved(eager, x, kernel, bias, op, {op.batch, op.out_channels, x.sizes[2] / stride});
}

Tensor convolution(Eager& eager, const Tensor& x, const Tensor& kernel, const Tensor& bias,
                   const ConvolutionSteps& steps) {
  Convolution op;
  op.type = eager.convolution_type(x.type);
  op.channels_last = lies_channels_last(x);
  op.batch = x.sizes[0];
  op.in_channels = x.sizes[1];
  op.out_channels = kernel.sizes[0];
  op.groups = steps.groups;
  Dims sizes{x.sizes[0], kernel.sizes[0]};
  for (int i = 2; i < x.sizes.rank(); ++i) sizes.push_back(convolved_side(x.sizes[i], kernel.sizes[i], steps));
  const auto unless_as = [](std::int64_t columns, std::int64_t rows) { return columns == rows ? 0 : columns; };
  const bool signal = x.sizes.rank() == 3;  // an image of one row
  op.size = signal ? 1 : x.sizes[2];
  op.kernel = signal ? 1 : kernel.sizes[2];
  op.stride = signal ? 1 : steps.stride;
  op.width = unless_as(x.sizes.last(), op.size);
  op.kernel_width = unless_as(kernel.sizes.last(), op.kernel);
  op.stride_width = unless_as(steps.stride, op.stride);
  const std::int64_t rows = signal ? 1 : sizes[2], columns = sizes.last();
  if (op.out_rows() != rows || op.out_columns() != columns) op.out_size = rows, op.out_width = columns;
  return convolved(eager, op.channels_last ? x : contiguous(eager, x), kernel, bias, op, sizes);
}

}  // namespace ridgeline::eager::aten

#include "sim/workload/families/image_rows.h"

#include "sim/workload/aten/images.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/eager/function_node.h"

namespace ridgeline::families {

namespace aten = eager::aten;

ImageRows::ImageRows(const Composition& composition, StackSite& site)
    : s_([&] {
        Stack like = composition.stack;
        like.positions = PositionKind::none;
        return like;
      }()),
      tower_(*composition.encoder),
      eager_(site.eager),
      blocks_(s_, site, 0, StagePart{0, 0, false, false}) {
  const ModuleScope module(eager_.recorder, "projector");
  const std::int64_t width = tower_.hidden, wide = width * s_.image_merge * s_.image_merge;
  if (s_.image_norm == ImageNorm::rms) norm_ = blocks_.norm_layer(width);
  if (s_.image_norm == ImageNorm::layer_joined) norm_ = {blocks_.parameter({wide}), blocks_.parameter({wide})};
  if (s_.image_merge_projection) merge_ = blocks_.linear_layer(width, wide, false);
  const std::int64_t in = s_.image_merge_projection ? width : wide,
                     between = s_.image_width > 0 ? s_.image_width : s_.hidden;
  first_ = blocks_.linear_layer(s_.image_layers == 1 ? s_.hidden : between, in, s_.image_bias);
  if (s_.image_layers == 2) second_ = blocks_.linear_layer(s_.hidden, between, s_.image_bias);
  for (std::int64_t i = 0; i < s_.image_deep; ++i)
    deep_.push_back({{blocks_.parameter({wide}), blocks_.parameter({wide})},
                     blocks_.linear_layer(between, wide, s_.image_bias),
                     blocks_.linear_layer(s_.hidden, between, s_.image_bias)});
}

std::vector<Tensor> ImageRows::deep_rows(const Tensor& features) {
  const ModuleScope module(eager_.recorder, "projector");
  std::vector<Tensor> all;
  for (const Deep& one : deep_) {
    Tensor x = layer_norm(eager_, s_.image_merge > 1 ? joined(features) : features, one.norm, true);
    x = blocks_.activated(linear(eager_, x, one.first), s_.image_activation);
    all.push_back(linear(eager_, x, one.second));
  }
  return all;
}

Tensor ImageRows::rows(Tensor features) {
  const ModuleScope module(eager_.recorder, "projector");
  Tensor x = std::move(features);
  if (tower_.class_token) {
    eager_.recorder.host(HostClass::view);
    x = aten::slice(eager_, x, 1, x.sizes[1] - 1 - tower_.extra_tokens);
  }
  if (s_.image_pool > 1) x = pooled(x);
  if (s_.image_norm == ImageNorm::rms) x = blocks_.norm(x, norm_);
  if (s_.image_merge > 1) x = joined(x);
  if (s_.image_norm == ImageNorm::layer_joined) x = layer_norm(eager_, x, norm_, true);
  if (merge_.weight != nullptr) x = linear(eager_, x, merge_);
  x = linear(eager_, x, first_);
  if (second_.weight == nullptr) return x;
  x = blocks_.activated(x, s_.image_activation);
  return linear(eager_, x, second_);
}

Tensor ImageRows::pooled(const Tensor& patches) {
  const std::int64_t batch = patches.sizes[0], width = patches.sizes[2], side = tower_.patch_side();
  Tensor image = contiguous(eager_, transpose(eager_, patches, 1, 2));
  image = view(eager_, image, {batch, width, side, side});
  aten::PoolingSteps steps;
  steps.window = steps.stride = s_.image_pool;
  eager_.recorder.host(HostClass::pointwise);
  image = aten::average_pool(eager_, image, steps);
  const std::int64_t left = side / s_.image_pool;
  image = view(eager_, image, {batch, width, left * left});
  return contiguous(eager_, transpose(eager_, image, 1, 2));
}

// Neighbours of a square lie apart in the order of rows.
Tensor ImageRows::joined(const Tensor& patches) {
  const std::int64_t batch = patches.sizes[0], width = patches.sizes[2], by = s_.image_merge,
                     side = tower_.patch_side() / s_.image_pool / by;
  Tensor x = aten::contiguous(eager_, patches);
  x = view(eager_, x, {batch, side, by, side, by * width});
  x = contiguous(eager_, transpose(eager_, x, 2, 3));
  return view(eager_, x, {batch, side * side, by * by * width});
}

// get_placeholder_mask counts the marked numbers, for which the host waits; the backward pass picks them out, for which
// it waits again (masked_scatter_backward).
Tensor with_image_rows(Eager& eager, const Tensor& rows, const Tensor& ids, const Tensor& features) {
  using F = PointwiseFunction;
  const auto picked_out = [](Eager& at, const Tensor& from, const Tensor& mask, const Dims& sizes) {
    const Tensor counted = at.empty({1}, DType::int64);
    at.recorder.op(Reduction{ReductionKind::sum_all, DType::int64, 1, mask.elements()}, {&mask}, {&counted});
    at.recorder.op(Copy{CopyKind::device_to_host, DType::int64, 1, 1, 1}, {&counted}, {});
    at.recorder.wait_for_gpu();
    const Tensor places = aten::plain(at, F::nonzero, {sizes.product(), mask.sizes.rank()}, DType::int64, {&mask});
    return aten::plain(at, F::index, sizes, from.type, {&from, &places});
  };
  eager.recorder.host(HostClass::pointwise, 8);
  const Tensor marked = aten::plain(eager, F::equal, {ids.sizes[0], ids.sizes[1], 1}, DType::boolean, {&ids});
  const Tensor mask = aten::plain(eager, F::other, rows.sizes, DType::boolean, {&marked});
  { const Tensor counted = picked_out(eager, rows.detached(), mask, features.sizes); }
  auto* const node = eager::node_for<1>(
      eager, {&rows, &features}, HostClass::pointwise_backward, [picked_out, sizes = features.sizes](auto& pass) {
        const Tensor& gradient = pass.in[0];
        if (pass.node.needs(0)) {
          pass.out[0] = pass.eager.empty_like(gradient);
          aten::pointwise(pass.eager, F::masked_fill, {&gradient, &pass.saved[0]}, pass.out[0]);
        }
        if (pass.node.needs(1)) pass.out[1] = picked_out(pass.eager, gradient, pass.saved[0], sizes);
      });
  if (node != nullptr) node->saved[0] = eager.save(mask);
  Tensor result = eager.empty_like(rows);
  eager.recorder.op(Copy{CopyKind::contiguous, rows.type, rows.elements() / rows.sizes.last(), rows.sizes.last(), 1},
                    {&rows}, {&result});
  const Tensor places = eager.empty(rows.sizes, DType::int64);
  eager.recorder.op(Reduction{ReductionKind::scan_cols, DType::int64, 1, mask.elements()}, {&mask}, {&places});
  aten::pointwise(eager, F::index, {&features, &mask, &places}, result);
  attach(result, node);
  return result;
}

}  // namespace ridgeline::families

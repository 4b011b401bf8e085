// Windows of an image in stages: attention inside windows, every other layer's moved by half a window, and patches
// merged between stages (Swin).
#include <algorithm>

#include "sim/workload/aten/attention.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/regroup.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

namespace aten = eager::aten;

void StackNetwork::make_stages() {
  std::int64_t grid = s_.image_size / s_.patch, width = s_.hidden, first = 0;
  stages_.resize(s_.stage_layers.size());
  for (std::size_t i = 0; i < stages_.size(); ++i, grid /= 2, width *= 2) {
    Stage& stage = stages_[i];
    stage.stack = s_;
    stage.stack.stage_layers.clear();
    stage.stack.stage_heads.clear();
    stage.stack.layers = s_.stage_layers[i];
    stage.stack.heads = s_.stage_heads[i];
    stage.stack.hidden = width;  // heads are as wide in all stages
    stage.stack.feed_forward = width * s_.inner() / s_.hidden;
    stage.stack.final_norm = false;
    const StagePart part{std::clamp<std::int64_t>(part_.first - first, 0, stage.stack.layers),
                         std::clamp<std::int64_t>(part_.last - first, 0, stage.stack.layers)};
    const auto block = static_cast<std::int16_t>(first_block_ + first);
    first += stage.stack.layers;
    if (part.first == part.last) continue;
    stage.network = std::make_unique<StackNetwork>(stage.stack, site_, block, part, nullptr, grid);
    stage.ends = part.last == stage.stack.layers;
    stage.merges = stage.ends && i + 1 < stages_.size();
    if (!stage.merges) continue;
    const ModuleScope module(eager_.recorder, "merging");
    stage.merge = linear_layer(2 * width, 4 * width, false);
    stage.merge_norm = norm_layer(4 * width);
  }
  const ModuleScope module(eager_.recorder, "final_norm");
  if (s_.final_norm && part_.head) final_norm_ = norm_layer(s_.out_width());
}

Tensor StackNetwork::run_stages(Tensor x) {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].network == nullptr) continue;
    x = stages_[i].network->run(x);
    if (!stages_[i].ends) return x;  // the next part of a pipeline goes on with it
    if (stages_[i].merges) x = merged(x, i);
    // What each stage gives is kept as an image too.
    eager_.recorder.host(HostClass::contiguous);
    aten::contiguous(eager_, aten::permute(eager_, x.detached(), {0, 2, 1}));
  }
  return x;
}

Tensor StackNetwork::merged(const Tensor& x, std::size_t stage) {
  const ModuleScope module(eager_.recorder, "merging");
  eager_.recorder.host(HostClass::view, 8);
  eager_.recorder.host(HostClass::concatenate);
  const Tensor four = aten::neighbours_joined(eager_, x, stages_[stage].network->grid_);
  return linear(eager_, norm(four, stages_[stage].merge_norm), stages_[stage].merge);
}

// A trained number for each head and distance, in the order of scores: [1, heads, patches, patches].
Tensor StackNetwork::window_bias(const AttentionWeights& weights, std::int64_t side) {
  eager_.recorder.host(HostClass::pointwise, 2);
  const std::int64_t patches = side * side;
  const Tensor index = aten::plain(eager_, PointwiseFunction::arange, {patches * patches}, DType::int64, {});
  const Tensor rows = aten::rows_at(eager_, weights.relative.weight->value, index, {patches * patches, s_.heads});
  const Tensor wide = view(eager_, rows, {patches, patches, s_.heads});
  return aten::unsqueeze(eager_, contiguous(eager_, aten::permute(eager_, wide, {2, 0, 1})), 0);
}

// Patches that came from the other side of the image do not see each other: [sequences x windows, 1, patches, patches].
Tensor StackNetwork::moved_mask(std::int64_t sequences, std::int64_t windows, std::int64_t side, DType type) {
  using F = PointwiseFunction;
  eager_.recorder.host(HostClass::pointwise, 24);
  const std::int64_t patches = side * side;
  const Tensor places = aten::arange(eager_, grid_, DType::int64);
  Tensor regions;
  for (int axis = 0; axis < 2; ++axis) {
    Tensor sum;
    for (int i = 0; i < 2; ++i) {
      const Tensor behind = aten::plain(eager_, F::equal, {grid_}, DType::boolean, {&places});
      const Tensor number = aten::plain(eager_, F::cast, {grid_}, DType::int64, {&behind});
      sum = sum.defined() ? aten::plain(eager_, F::add, {grid_}, DType::int64, {&sum, &number}) : number;
    }
    regions = sum;
  }
  const Dims all{windows, patches, patches};
  const Tensor image = aten::plain(eager_, F::cast, {1, grid_, grid_, 1}, type, {&regions});
  const Tensor parts = aten::contiguous(eager_, aten::transpose(eager_, image, 1, 2));
  Tensor mask = aten::plain(eager_, F::add, all, type, {&parts});
  for (int i = 0; i < 2; ++i) {
    const Tensor differs = aten::plain(eager_, F::equal, all, DType::boolean, {&mask});
    mask = aten::masked_fill(eager_, mask, differs);
  }
  const Tensor repeated = eager_.empty({sequences * windows, 1, patches, patches}, type);
  eager_.recorder.op(Copy{CopyKind::permute, type, sequences * windows, patches * patches, 1}, {&mask}, {&repeated});
  return repeated;
}

// The interpolation to the same size is a pass, forward and backward; the index lies with the host.
Tensor StackNetwork::patch_bias(const AttentionWeights& weights) {
  eager_.recorder.host(HostClass::pointwise, 8);
  const std::int64_t side = s_.image_size / s_.patch, places = side * side + 1,
                     distances = (2 * side - 1) * (2 * side - 1);
  const Tensor& table = weights.relative.weight->value;
  const Tensor inside = aten::slice(eager_, table, 0, distances), outside = aten::slice(eager_, table, 0, 3);
  const Tensor sized = aten::copied(eager_, inside), turned = aten::copied(eager_, sized);
  const Tensor all = aten::join(eager_, {&turned, &outside}, 0);
  const Tensor index = eager_.empty({places * places}, DType::int64);
  eager_.recorder.op(Copy{CopyKind::pageable_to_device, DType::int64, places, places, 1}, {}, {&index});
  const Tensor rows = aten::rows_at(eager_, all, index, {places * places, s_.heads});
  const Tensor wide = view(eager_, rows, {places, places, s_.heads});
  return aten::unsqueeze(eager_, contiguous(eager_, aten::permute(eager_, wide, {2, 0, 1})), 0);
}

Tensor StackNetwork::biased_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias) {
  // Memory-efficient attention loads rows of a mask that begin at 16 bytes, and gives its gradient.
  constexpr std::int64_t kElements = 8;
  Tensor added = aten::aligned_rows(eager_, eager_.autocast.lowered(eager_, bias), kElements);
  added = aten::expand(eager_, added, {q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[2]});
  eager_.recorder.host(HostClass::attention_fused);
  const Tensor value = eager_.autocast.lowered(eager_, v), key = eager_.autocast.lowered(eager_, k),
               query = eager_.autocast.lowered(eager_, q);
  return aten::fused_attention(eager_, AttentionBackend::efficient, query, key, value, false,
                               s_.attention_dropout > 0.0, added);
}

Tensor StackNetwork::window_attention(const AttentionWeights& weights, const Tensor& windows, std::int64_t sequences,
                                      bool moved) {
  const ModuleScope module(eager_.recorder, "attention");
  const std::int64_t count = windows.sizes[0], patches = windows.sizes[1], side = std::min(s_.window_side, grid_);
  Tensor y, probabilities, masked, bias, mask, v, k, q;
  if (moved) mask = moved_mask(sequences, count / sequences, side, windows.type);
  const Tensor x = site_.split.enter(windows);
  project(weights, x, x, q, k, v);
  bias = window_bias(weights, side);
  if (moved) bias = add(eager_, bias, mask);
  if (fuses()) {
    y = biased_attention(q, k, v, bias);
  } else {
    y = written_out(weights, q, k, v, bias, {}, masked, probabilities);
  }
  y = contiguous(eager_, transpose(eager_, y, 1, 2));
  y = view(eager_, y, {count, patches, s_.heads * s_.head_width()});
  return site_.split.row_linear(y, weights.output);
}

}  // namespace ridgeline::families

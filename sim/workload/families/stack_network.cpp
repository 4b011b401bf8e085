#include "sim/workload/families/stack_network.h"

#include <algorithm>

#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/regroup.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/image_rows.h"

namespace ridgeline::families {

namespace aten = eager::aten;

// Variables are declared so that they die in the order in which Python clears a function's: the C++ order is reversed.

StackNetwork::StackNetwork(const Stack& stack, StackSite& site, std::int16_t first_block, const StagePart& part,
                           const Affine* tokens, std::int64_t grid)
    : s_(stack), site_(site), eager_(site.eager), first_block_(first_block), part_(part), grid_(grid) {
  if (grid_ == 0) make_embedding(tokens);
  if (!s_.stage_layers.empty()) {
    make_stages();
    return;
  }
  make_layers();
  if (s_.first_convolution > 0 && part_.first == 0) {
    convolution_ = {parameter({s_.hidden, s_.hidden, s_.first_convolution}), parameter({s_.hidden})};
    convolution_norm_ = norm_layer(s_.hidden);
  }
  if (part_.head && s_.final_norm) {
    const ModuleScope module(eager_.recorder, "final_norm");
    final_norm_ = norm_between(s_.hidden);
  }
  if (part_.head) make_unread_top();
  for (std::int64_t i = 0; i < s_.unread_layers; ++i) {  // two norms, attention and a plain feed-forward part
    const std::int64_t d = s_.hidden;
    keep_unread({4 * (d * d + d) + 2 * d * s_.inner() + s_.inner() + 5 * d});
  }
  make_positions();
}

void StackNetwork::make_layers() {
  if (part_.last <= part_.first) return;
  for (std::int64_t i = group_of(part_.first); i <= group_of(part_.last - 1); ++i) {
    eager_.recorder.layer = static_cast<std::int16_t>(first_block_ + i);
    const BlockScope scope(eager_.recorder, i);
    make_layer(i);
  }
  eager_.recorder.layer = -1;
}

void StackNetwork::make_positions() {
  if (s_.positions == PositionKind::rotary && s_.rotary_table) {
    frozen_positions_ = eager_.empty({s_.max_positions, s_.turned()}, site_.type);
    eager_.recorder.set_category(frozen_positions_.storage.id(), Category::weights);
    frozen_ += s_.max_positions * s_.turned();
  } else if (s_.positions == PositionKind::rotary && !s_.plain) {
    for (Tensor* table : {&frequencies_, &original_frequencies_})
      *table = site_.buffer({1, s_.turned() / 2, 1}, s_.rotary_cast ? site_.type : DType::fp32);
  }
}

Parameter* StackNetwork::parameter(const Dims& sizes) { return site_.parameter(sizes); }

Affine StackNetwork::norm_layer(std::int64_t width) {
  Affine layer;
  if (!s_.norm_weight) return layer;
  layer.weight = parameter({width});
  if (s_.norm_bias &&
      (s_.norm == NormKind::layer || s_.norm == NormKind::layer_plus_one || s_.norm == NormKind::layer_written_out))
    layer.bias = parameter({width});
  return layer;
}

Affine StackNetwork::norm_between(std::int64_t width) {
  Affine layer = norm_layer(width);
  for (Parameter* one : {layer.weight, layer.bias})
    if (one != nullptr) one->partial_gradient = site_.split.dtensor() && site_.split.cuts_sequence();
  return layer;
}

Tensor StackNetwork::between(const Tensor& x, const Affine& weights) {
  constexpr int kOperations = 8;  // two casts, square, mean, sum, root, two products
  const bool one = weights.weight == nullptr || s_.norm == NormKind::layer || s_.norm == NormKind::rms_fused;
  return site_.split.between(norm(x, weights), one ? 1 : kOperations);
}

void StackNetwork::make_embedding(const Affine* tokens) {
  const ModuleScope module(eager_.recorder, "embeddings");
  const std::int64_t width = s_.table_width();
  if (part_.embedding) make_tables(tokens);
  if (s_.positions == PositionKind::disentangled) {
    distances_ = {parameter({s_.position_rows, s_.hidden}), nullptr};
    if (s_.position_norm) distance_norm_ = norm_layer(s_.hidden);
  }
  if (width == s_.hidden) return;
  if (part_.embedding) projection_in_ = linear_layer(s_.hidden, width, s_.embedding_projection_bias);
  if (part_.head && s_.head == HeadKind::language_model)
    projection_out_ = linear_layer(width, s_.hidden, s_.embedding_projection_bias);
}

void StackNetwork::make_tables(const Affine* tokens) {
  const std::int64_t width = s_.table_width();
  if (s_.input == InputKind::tokens) {
    const Dims table{site_.split.vocabulary(s_.vocabulary), width};
    tokens_ = tokens != nullptr ? *tokens : Affine{site_.token_table ? site_.token_table(table) : parameter(table)};
  }
  if (s_.input == InputKind::image) {
    if (s_.class_token) class_token_ = parameter({1, 1, s_.hidden});
    if (s_.extra_tokens > 0) extra_tokens_ = parameter({1, s_.extra_tokens, s_.hidden});
    if (s_.mask_token) {
      keep_unread({1, s_.hidden});
    }
    patches_.weight = parameter({s_.hidden, s_.channels, s_.patch, s_.patch});
    if (s_.patch_bias) patches_.bias = parameter({s_.hidden});
  }
  if (s_.input == InputKind::audio) {
    convolution_one_ = {parameter({s_.hidden, s_.audio_bins, 3}), parameter({s_.hidden})};
    convolution_two_ = {parameter({s_.hidden, s_.hidden, 3}), parameter({s_.hidden})};
  }
  const std::int64_t rows = s_.max_positions + s_.position_offset - (s_.late_tokens ? s_.extra_tokens : 0);
  // Beside a projection, tables of positions are as wide as the tables or as the blocks.
  const std::int64_t position_width = s_.embedding_norm ? width : s_.hidden;
  if (s_.positions == PositionKind::learned || s_.position_table)
    positions_ = {parameter({rows, position_width}), nullptr};
  if (s_.positions == PositionKind::sinusoidal) {
    frozen_positions_ = eager_.empty({rows, s_.hidden}, site_.type);
    eager_.recorder.set_category(frozen_positions_.storage.id(), Category::weights);
    if (!s_.position_buffer) frozen_ += rows * s_.hidden;
  }
  if (s_.box_rows > 0)
    for (Affine& table : boxes_) table = {parameter({s_.box_rows, width}), nullptr};
  if (s_.type_vocabulary > 0) types_ = {parameter({s_.type_vocabulary, width}), nullptr};
  if (s_.embedding_norm) embedding_norm_ = norm_layer(width);
  if (s_.output_modules && types_.weight != nullptr && positions_.weight != nullptr)
    for (Tensor* ids : {&position_ids_, &type_ids_}) *ids = site_.buffer({1, rows}, DType::int64);
  if (s_.contact_head) keep_unread({1, s_.layers * s_.heads + 1});
}

void StackNetwork::make_layer(std::int64_t number) {
  LayerWeights& weights = layers_.emplace_back();
  weights.normed = s_.first_norm || number > 0;
  if (weights.normed && s_.plain) weights.attention_norm = norm_between(s_.hidden);
  make_attention(weights.attention, s_.key_value_rank > 0);
  if (s_.positions == PositionKind::relative && (number == part_.first || s_.relative_each_layer))
    make_relative(weights.attention);
  const bool behind_parts = s_.norms_behind || s_.plain;
  if (weights.normed && !behind_parts) weights.attention_norm = norm_between(s_.hidden);
  const auto scale_of_sequence = [this] {
    Parameter* result = parameter({s_.hidden});
    result->partial_gradient = site_.split.dtensor() && site_.split.cuts_sequence();
    return result;
  };
  if (s_.layer_scale) weights.attention_scale = scale_of_sequence();
  if (s_.norm_place == NormPlace::both) weights.attention_after = norm_between(s_.hidden);
  if (s_.cross_attention) {
    make_attention(weights.cross, false);
    weights.cross_norm = norm_between(s_.hidden);
  }
  if (s_.residual != ResidualKind::parallel && s_.plain) weights.feed_forward_norm = norm_between(s_.hidden);
  if (s_.has_experts(number)) make_experts(weights.experts);
  else make_feed_forward(weights.feed_forward, s_.inner());
  if (weights.normed && s_.norms_behind && !s_.plain) weights.attention_norm = norm_between(s_.hidden);
  if (s_.residual != ResidualKind::parallel && !s_.plain) weights.feed_forward_norm = norm_between(s_.hidden);
  if (s_.layer_scale) weights.feed_forward_scale = scale_of_sequence();
  if (s_.norm_place == NormPlace::both) weights.feed_forward_after = norm_between(s_.hidden);
  if (s_.norm_place == NormPlace::after) {
    std::swap(weights.attention_norm, weights.attention_after);
    std::swap(weights.feed_forward_norm, weights.feed_forward_after);
  }
}

// Numbers that all layers add to scores are looked up before the blocks, where fully_shard has gathered the root alone.
void StackNetwork::make_relative(AttentionWeights& weights) {
  weights.relative = {parameter({s_.relative_buckets, s_.heads}), nullptr};
  if (site_.training.parallel.shards_parameters() && !s_.relative_each_layer)
    weights.relative.weight->accumulate.layer = -1;
}

Tensor StackNetwork::run(const Tensor& input, const Tensor& encoded, const Tensor& positions) {
  Around around;  // variables of the model: they live to its end
  Tensor x = grid_ == 0 && part_.embedding ? embed(input, around) : input;
  if (s_.image_rows) {
    x = with_image_rows(eager_, x, input, encoded);
    if (around.rows.defined()) around.rows = x;
  }
  if (s_.output_modules) held_ = x;
  if (s_.sequence_first) x = contiguous(eager_, transpose(eager_, x, 0, 1));
  if (!stages_.empty()) {
    x = run_stages(std::move(x));
  } else {
    look_around(x, s_.image_rows ? Tensor{} : encoded, positions, around);
    Around seen = around;  // a checkpointed block keeps what it was called with
    seen.rows = seen.position_rows = Tensor{};
    for (std::int64_t i = part_.first; i < part_.last; ++i) {
      const auto block = static_cast<std::int16_t>(first_block_ + i);
      const auto weights = static_cast<std::size_t>(group_of(i) - group_of(part_.first));
      eager_.recorder.layer = block;
      const BlockScope scope(eager_.recorder, i);
      const auto run = [this, i, weights, block, seen](Eager& eager, Tensor given) {
        eager.recorder.layer = block;
        return layer(i, layers_[weights], std::move(given), seen);
      };
      const Tensor given = i == 0 && convolution_.weight != nullptr ? x : Tensor{};
      x = site_.run_block(run, x);
      if (given.defined()) x = beside_first_layer(given, x);
      if (static_cast<std::size_t>(i) < deep_rows_.size())
        x = with_image_rows(eager_, x, input, deep_rows_[static_cast<std::size_t>(i)]);
    }
  }
  eager_.recorder.layer = -1;
  deep_rows_.clear();
  if (!part_.head || s_.pooler != PoolerKind::pretrained_tanh) forget();
  if (grid_ > 0 || !part_.head) return x;
  if (s_.sequence_first) x = contiguous(eager_, transpose(eager_, x, 0, 1));
  const ModuleScope module(eager_.recorder, "final_norm");
  if (s_.plain) held_ = x;
  if (s_.final_norm) x = between(x, final_norm_);
  if (s_.final_dropout) x = dropout(eager_, x, s_.dropout);
  return x;
}

// The host looks at a number that the GPU makes.
void StackNetwork::wait_for_a_number() {
  eager_.recorder.host(HostClass::pointwise, 2);
  const Tensor number = aten::plain(eager_, PointwiseFunction::other, {}, DType::fp32, {});
  const Tensor answer = aten::plain(eager_, PointwiseFunction::equal, {}, DType::boolean, {&number});
  eager_.recorder.op(Copy{CopyKind::device_to_host, DType::boolean, 1, 1, 1}, {&answer}, {});
  eager_.recorder.wait_for_gpu();
}

Tensor StackNetwork::path_dropped(const Tensor& branch, std::int64_t layer) {
  if (s_.drop_path <= 0.0 || first_block_ + layer == 0) return branch;  // shares rise from zero in the first layer
  eager_.recorder.host(HostClass::pointwise, 5);
  using F = PointwiseFunction;
  Dims sizes{branch.sizes[0]};
  while (sizes.rank() < branch.sizes.rank()) sizes.push_back(1);
  Tensor kept = aten::plain(eager_, F::other, sizes, branch.type, {});
  kept = aten::plain(eager_, F::add, sizes, branch.type, {&kept});
  kept = aten::plain(eager_, F::other, sizes, branch.type, {&kept});
  const Tensor larger = aten::divide(eager_, branch);
  return aten::mul(eager_, larger, kept);
}

Tensor StackNetwork::dropped_inside(const Tensor& branch) {
  return s_.plain && s_.residual_dropout ? dropout(eager_, branch, s_.dropout) : branch;
}

template <typename Part>
Tensor StackNetwork::residual(const Tensor& x, const Sides& sides, Part part) {
  Tensor branch;
  {
    const bool first = s_.norm_place == NormPlace::pre || s_.norm_place == NormPlace::both;
    Tensor normed = first && sides.normed ? between(x, sides.before) : x;
    branch = part(normed);
    normed = Tensor{};
  }
  if (s_.norm_place == NormPlace::both || s_.norm_place == NormPlace::after) branch = between(branch, sides.after);
  if (sides.dropped && s_.residual_dropout && !s_.plain) branch = dropout(eager_, branch, s_.dropout);
  if (s_.residual_scale) branch = scale(eager_, branch);
  if (sides.scale != nullptr) branch = mul(eager_, branch, sides.scale->value);
  branch = path_dropped(branch, sides.layer);
  Tensor sum = s_.output_modules ? add(eager_, branch, x) : add(eager_, x, branch);
  if (!s_.output_modules) branch = Tensor{};
  if (s_.norm_place == NormPlace::post) sum = between(sum, sides.before);
  return sum;
}

Tensor StackNetwork::layer(std::int64_t number, const LayerWeights& weights, Tensor x, const Around& around) {
  if (grid_ > 0) return window_layer(number, weights, x);
  if (s_.drops_layers) eager_.recorder.host(HostClass::pointwise, 2);  // a random number of the host and a look at it
  if (s_.residual != ResidualKind::serial) return parallel_layer(number, weights, x, around);
  Attended attended, crossed;  // what eager attention returns beside its result lives to the end of the layer
  const LayerVariables variables{*this};
  const bool drops = s_.attention_output_dropout;
  const Sides attention{
      weights.attention_norm, weights.attention_after, weights.attention_scale, drops, weights.normed, number};
  x = residual(x, attention, [&](const Tensor& normed) {
    if (runs_again(BlockPart::attention))
      return eager::checkpoint(eager_, attention_again(weights.attention, around, number), normed);
    attended = attend(weights.attention, normed, around, number, false);
    return keeps_variables() ? attended.result : std::exchange(attended.result, Tensor{});
  });
  context_ = Tensor{};
  if (s_.cross_attention)
    x = residual(x, {weights.cross_norm, weights.cross_norm, nullptr, drops}, [&](const Tensor& normed) {
      crossed = attend(weights.cross, normed, around, number, true);
      return std::exchange(crossed.result, Tensor{});
    });
  const Sides feed_forward{
      weights.feed_forward_norm, weights.feed_forward_after, weights.feed_forward_scale, true, true, number};
  return residual(x, feed_forward, [&](Tensor& normed) {
    if (runs_again(BlockPart::feed_forward)) return eager::checkpoint(eager_, part_two_again(weights, number), normed);
    return part_two(weights, number, s_.plain && !keeps_variables() ? std::exchange(normed, Tensor{}) : normed);
  });
}

bool StackNetwork::runs_again(BlockPart part) const {
  return eager_.gradients_enabled && site_.training.treats(std::max<std::int64_t>(0, eager_.recorder.layer), part);
}

StackNetwork::Again StackNetwork::attention_again(const AttentionWeights& weights, const Around& around,
                                                  std::int64_t number) {
  return [this, &weights, around, number](Eager&, const Tensor& given) {
    return attend(weights, given, around, number, false).result;
  };
}

StackNetwork::Again StackNetwork::part_two_again(const LayerWeights& weights, std::int64_t number) {
  return [this, &weights, number](Eager&, const Tensor& given) { return part_two(weights, number, given); };
}

Tensor StackNetwork::window_layer(std::int64_t number, const LayerWeights& weights, const Tensor& x) {
  const std::int64_t batch = x.sizes[0], width = x.sizes[2], side = std::min(s_.window_side, grid_),
                     count = grid_ / side;
  const bool moved = number % 2 == 1 && grid_ > s_.window_side;
  // Rows of a window lie apart: [sequences, rows of windows, rows of a window, windows of a row, a window's row].
  const Dims by_rows{batch, count, side, count, side * width}, by_windows{batch, count, count, side, side * width};
  const Sides attention{weights.attention_norm, weights.attention_after, nullptr, true, true, number};
  const Tensor y = residual(x, attention, [&](const Tensor& normed) {
    Tensor grid = view(eager_, normed, {batch, grid_, grid_, width});
    grid = aten::copied(eager_, grid);  // padding by nothing is a copy
    if (moved) grid = aten::rolled(eager_, grid);
    grid = contiguous(eager_, transpose(eager_, view(eager_, grid, by_rows), 2, 3));
    Tensor windows = view(eager_, grid, {batch * count * count, side * side, width});
    grid = Tensor{};
    windows = window_attention(weights.attention, windows, batch, moved);
    windows = contiguous(eager_, transpose(eager_, view(eager_, windows, by_windows), 2, 3));
    grid = view(eager_, windows, {batch, grid_, grid_, width});
    windows = Tensor{};
    if (moved) grid = aten::rolled(eager_, grid);
    return view(eager_, grid, {batch, grid_ * grid_, width});
  });
  return residual(y, {weights.feed_forward_norm, weights.feed_forward_after, nullptr, true, true, number},
                  [&](const Tensor& normed) { return feed_forward(weights.feed_forward, normed); });
}

Tensor StackNetwork::parallel_layer(std::int64_t number, const LayerWeights& weights, const Tensor& x,
                                    const Around& around) {
  Attended attended;
  Tensor other, branch, normed;
  normed = between(x, weights.attention_norm);
  if (runs_again(BlockPart::attention)) {
    branch = eager::checkpoint(eager_, attention_again(weights.attention, around, number), normed);
  } else {
    attended = attend(weights.attention, normed, around, number, false);
    branch = std::exchange(attended.result, Tensor{});
  }
  const bool drops = s_.residual_dropout && !s_.plain;
  if (drops) branch = dropout(eager_, branch, s_.dropout);
  if (s_.residual == ResidualKind::parallel_two_norms) normed = between(x, weights.feed_forward_norm);
  other = runs_again(BlockPart::feed_forward) ? eager::checkpoint(eager_, part_two_again(weights, number), normed)
                                              : part_two(weights, number, normed);
  if (drops) other = dropout(eager_, other, s_.dropout);
  const Tensor sum = add(eager_, branch, other);
  branch = Tensor{};
  return add(eager_, sum, x);
}

}  // namespace ridgeline::families

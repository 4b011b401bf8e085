// Attention of a stack: projections, positions, and the backend or the products that compute it.
#include <algorithm>
#include <tuple>

#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

namespace aten = eager::aten;

namespace {

constexpr std::int64_t kModulePython = 31;  // microseconds of a module's own Python around its operations

/// Of a mask of all positions, for so many tokens and those that they see.
Tensor corner(const Tensor& mask, std::int64_t length, std::int64_t seen) {
  Tensor result = mask;
  result.sizes[2] = length;
  result.sizes[3] = seen;
  return result;
}

}  // namespace

void StackNetwork::make_attention(AttentionWeights& weights, bool latent) {
  const ModuleScope module(eager_.recorder, &weights == &layers_.back().cross ? "cross_attention" : "attention");
  if (latent) return make_latent_attention(weights);
  const std::int64_t d = s_.hidden, width = s_.head_width(), wide = s_.heads * width,
                     shared = s_.key_value_count() * width;
  const auto own = [this](std::int64_t columns) { return gathers_heads() ? site_.split.share(columns) : columns; };
  const auto alike = [this](Affine layer) {  // on ranks that have the same keys and values
    if (s_.key_copies == 1) return layer;
    for (Parameter* one : {layer.weight, layer.bias, layer.adapter.down, layer.adapter.up})
      if (one != nullptr) one->partial_gradient = true;
    return layer;
  };
  if (s_.projection == ProjectionKind::separate) {
    weights.query = linear_layer(own(wide), d, s_.qkv_bias, LinearRole::query);
    weights.key = alike(linear_layer(own(shared), d, s_.key_bias.value_or(s_.qkv_bias), LinearRole::key));
    weights.value = alike(linear_layer(own(shared), d, s_.qkv_bias, LinearRole::value));
  } else {
    weights.fused = linear_layer(own(wide) + 2 * own(shared), d, s_.qkv_bias, LinearRole::qkv);
  }
  weights.output = linear_layer(d, own(wide), s_.output_bias, LinearRole::output);
  if (s_.plain && s_.mask_filled && s_.causal && !fuses())
    weights.visible = site_.buffer({1, 1, s_.max_positions, s_.max_positions}, site_.type);
  if (s_.positions == PositionKind::disentangled && s_.projection == ProjectionKind::fused_by_head) {
    weights.query.bias = parameter({wide});
    weights.value.bias = parameter({wide});
  }
  if (s_.positions == PositionKind::disentangled && !s_.shared_position_projection) {
    if (scores_position("content-to-position"))
      weights.position_key = linear_layer(wide, d, s_.projection == ProjectionKind::separate);
    if (scores_position("position-to-content")) weights.position_query = linear_layer(wide, d, true);
  }
  if (s_.window_side > 0 && !s_.images_apart) {
    const std::int64_t distances = 2 * std::max<std::int64_t>(s_.window_side, 1) - 1;
    weights.relative = {parameter({distances * distances, s_.heads}), nullptr};
  }
  if (s_.patch_distances) {
    const std::int64_t distances = 2 * (s_.image_size / s_.patch) - 1;
    weights.relative = {parameter({distances * distances + 3, s_.heads}), nullptr};
  }
  if (s_.sinks) weights.sinks = parameter({s_.heads});
  if (s_.query_key_norm == QueryKeyNorm::none) return;
  if (s_.query_key_norm == QueryKeyNorm::each_head) {
    weights.query_norm.weight = parameter({s_.heads, width});
    weights.key_norm.weight = alike({parameter({s_.key_value_count(), width})}).weight;
    return;
  }
  const bool by_head = s_.query_key_norm == QueryKeyNorm::head;
  weights.query_norm = norm_layer(by_head ? width : wide);
  weights.key_norm = norm_layer(by_head ? width : shared);
  for (const Affine& layer : {weights.query_norm, weights.key_norm})
    for (Parameter* one : {layer.weight, layer.bias})
      if (one != nullptr) one->partial_gradient = by_head && site_.split.several();  // of this rank's heads
}

void StackNetwork::make_latent_attention(AttentionWeights& weights) {
  const std::int64_t d = s_.hidden, turned = s_.rotary_head_dim, plain = s_.head_width(),
                     value = s_.value_head_dim > 0 ? s_.value_head_dim : plain, wide = s_.heads * (plain + turned);
  if (s_.query_rank > 0) {
    weights.query_down = linear_layer(s_.query_rank, d, s_.qkv_bias);
    weights.query_rank_norm = norm_layer(s_.query_rank);
    weights.query = linear_layer(wide, s_.query_rank, false, LinearRole::query);
  } else {
    weights.query = linear_layer(wide, d, false, LinearRole::query);
  }
  weights.key_value_down = linear_layer(s_.key_value_rank + turned, d, s_.qkv_bias);
  weights.key_value_rank_norm = norm_layer(s_.key_value_rank);
  weights.key_value_up = linear_layer(s_.heads * (plain + value), s_.key_value_rank, false, LinearRole::value);
  weights.output = linear_layer(d, s_.heads * value, s_.output_bias, LinearRole::output);
}

bool StackNetwork::fuses() const {
  return site_.attention != AttentionChoice::eager && s_.attention_code == AttentionCode::fused && !s_.sinks &&
         !s_.sequence_first;
}

void StackNetwork::project(const AttentionWeights& weights, const Tensor& x, const Tensor& from, Tensor& q, Tensor& k,
                           Tensor& v) {
  const auto heads = [&](Tensor rows, std::int64_t count, const Affine& norm_weights) {
    if (s_.query_key_norm == QueryKeyNorm::width && norm_weights.weight != nullptr) rows = norm(rows, norm_weights);
    rows = view(eager_, rows, {rows.sizes[0], rows.sizes[1], count, s_.head_width()});
    if (s_.query_key_norm == QueryKeyNorm::head && norm_weights.weight != nullptr) rows = norm(rows, norm_weights);
    if (s_.query_key_norm == QueryKeyNorm::each_head && norm_weights.weight != nullptr)
      rows = mul(eager_, norm(rows, {}), norm_weights.weight->value);
    const Tensor by_head = transpose(eager_, rows, 1, 2);
    return s_.copies_heads ? contiguous(eager_, by_head) : by_head;
  };
  const auto columns = [&](const Tensor& rows, const Affine& layer, std::int64_t count) {
    const Tensor mine = site_.split.column_linear(rows, layer);
    return gathers_heads() ? site_.split.gather_columns(mine, count * s_.head_width()) : mine;
  };
  Tensor queries = columns(x, weights.query, s_.heads);
  if (s_.score_scale == ScorePlace::queries) queries = scale(eager_, queries);
  q = heads(std::exchange(queries, Tensor{}), s_.heads, weights.query_norm);
  k = heads(columns(from, weights.key, s_.key_value_count()), s_.key_value_count(), weights.key_norm);
  v = heads(columns(from, weights.value, s_.key_value_count()), s_.key_value_count(), {});
}

void StackNetwork::project_fused(const AttentionWeights& weights, const Tensor& x, Tensor& q, Tensor& k, Tensor& v) {
  Tensor all = site_.split.column_linear(x, weights.fused);
  const std::int64_t batch = all.sizes[0], length = all.sizes[1], width = s_.head_width(),
                     shared = s_.key_value_count();
  eager_.recorder.host(HostClass::split);
  if (s_.projection == ProjectionKind::fused_by_head && shared == s_.heads) {
    all = view(eager_, all, {batch, length, s_.heads, 3 * width});
    if (s_.parts_selected) {
      for (Tensor* part : {&q, &k, &v}) *part = transpose(eager_, aten::slice_last(eager_, all, width), 1, 2);
      return norm_heads(weights, q, k);
    }
    all = transpose(eager_, all, 1, 2);
    auto parts = aten::split_last<3>(eager_, all);
    q = parts[0];
    k = parts[1];
    v = parts[2];
    return norm_heads(weights, q, k);
  }
  Tensor rows_q, rows_k, rows_v;
  if (s_.projection == ProjectionKind::fused_slices) {
    rows_q = aten::slice_last(eager_, all, s_.heads * width);
    rows_k = aten::slice_last(eager_, all, shared * width);
    rows_v = aten::slice_last(eager_, all, shared * width);
  } else {
    aten::split_last(eager_, all, {s_.heads * width, shared * width, shared * width}, {&rows_q, &rows_k, &rows_v});
  }
  q = transpose(eager_, view(eager_, rows_q, {batch, length, s_.heads, width}), 1, 2);
  k = transpose(eager_, view(eager_, rows_k, {batch, length, shared, width}), 1, 2);
  v = transpose(eager_, view(eager_, rows_v, {batch, length, shared, width}), 1, 2);
  norm_heads(weights, q, k);
}

void StackNetwork::project_in_place(const AttentionWeights& weights, const Tensor& x, Tensor& q, Tensor& k, Tensor& v) {
  const std::int64_t width = s_.head_width();
  if (s_.projection == ProjectionKind::separate) {
    for (const auto& [part, layer, count] :
         {std::tuple{&q, &weights.query, s_.heads}, std::tuple{&k, &weights.key, s_.key_value_count()},
          std::tuple{&v, &weights.value, s_.key_value_count()}}) {
      const Tensor rows = site_.split.column_linear(x, *layer);
      *part = view(eager_, rows, {rows.sizes[0], rows.sizes[1], count, width});
    }
  } else {
    constexpr std::int64_t kGroups = 4;
    const Tensor all = site_.split.column_linear(x, weights.fused);
    const std::int64_t batch = all.sizes[0], length = all.sizes[1];
    eager_.recorder.host(HostClass::split);
    const Tensor groups = view(eager_, all, {batch, length, kGroups, 3 * s_.heads / kGroups * width});
    const auto parts = aten::split_last<3>(eager_, groups);
    const auto ordered = [&](const Tensor& part) {
      eager_.recorder.host(HostClass::contiguous);
      const Tensor heads = view(eager_, part, {batch, length, kGroups, s_.heads / kGroups, width});
      return aten::reshape(eager_, heads, {batch, length, s_.heads, width});
    };
    q = ordered(parts[0]);
    k = ordered(parts[2]);
    v = ordered(parts[1]);
  }
  turn_in_place(q, k);
  for (Tensor* part : {&q, &k, &v}) *part = transpose(eager_, *part, 1, 2);
}

// Of [batch, heads, length, width]: rows of heads as they came from the product.
void StackNetwork::norm_heads(const AttentionWeights& weights, Tensor& q, Tensor& k) {
  if (s_.query_key_norm != QueryKeyNorm::head) return;
  q = transpose(eager_, norm(transpose(eager_, q, 1, 2), weights.query_norm), 1, 2);
  k = transpose(eager_, norm(transpose(eager_, k, 1, 2), weights.key_norm), 1, 2);
}

// Keys are one turned part that all heads share, and what the rank is multiplied up to.
void StackNetwork::project_latent(const AttentionWeights& weights, const Tensor& x, const Rotation& by, Tensor& q,
                                  Tensor& k, Tensor& v) {
  const std::int64_t batch = x.sizes[0], length = x.sizes[1], moving = s_.rotary_head_dim, plain = s_.head_width(),
                     value = s_.value_head_dim > 0 ? s_.value_head_dim : plain;
  Tensor queries = x;
  if (weights.query_down.weight != nullptr)
    queries = norm(linear(eager_, x, weights.query_down), weights.query_rank_norm);
  SplitLayers& split = site_.split;
  queries = split.partial_linear(split.enter_whole(queries), weights.query);
  queries = transpose(eager_, view(eager_, queries, {batch, length, s_.heads, plain + moving}), 1, 2);
  Tensor still_q, moving_q, rank, moving_k, still_k;
  eager_.recorder.host(HostClass::split, 3);
  aten::split_last(eager_, queries, {plain, moving}, {&still_q, &moving_q});
  const Tensor compressed = linear(eager_, x, weights.key_value_down);
  aten::split_last(eager_, compressed, {s_.key_value_rank, moving}, {&rank, &moving_k});
  Tensor up = split.partial_linear(split.enter_whole(norm(rank, weights.key_value_rank_norm)), weights.key_value_up);
  up = transpose(eager_, view(eager_, up, {batch, length, s_.heads, plain + value}), 1, 2);
  aten::split_last(eager_, up, {plain, value}, {&still_k, &v});
  moving_k = split.enter_whole(moving_k);
  moving_k = transpose(eager_, aten::reshape(eager_, moving_k, {batch, length, 1, moving}), 1, 2);
  moving_q = rotated(eager_, moving_q, by);
  moving_k = rotated(eager_, moving_k, by);
  const Tensor every_k = aten::expand(eager_, moving_k, {batch, s_.heads, length, moving});
  eager_.recorder.host(HostClass::concatenate, 2);
  q = aten::join(eager_, {&still_q, &moving_q});
  k = aten::join(eager_, {&still_k, &every_k});
}

StackNetwork::Attended StackNetwork::attend(const AttentionWeights& weights, const Tensor& given, const Around& around,
                                            std::int64_t number, bool cross) {
  const ModuleScope module(eager_.recorder, cross ? "cross_attention" : "attention");
  SplitLayers& split = site_.split;
  const std::int64_t batch = given.sizes[0], length = split.whole_length(given.sizes[1]);
  if (s_.positions == PositionKind::disentangled) return attend_disentangled(weights, split.enter(given), around);
  if (s_.sequence_first && !cross) return attend_sequence_first(weights, split.enter(given), around);
  const bool latent = s_.key_value_rank > 0 && !cross;  // down to the rank every rank computes alike
  const Tensor x = latent ? split.whole_sequence(given) : split.enter(given),
               encoded = cross ? split.enter(around.encoded) : Tensor{};
  Attended result;
  Tensor masked, values, y, v, k, q;
  if (latent) project_latent(weights, x, around.by, q, k, v);
  else if (s_.turned_in_place && !cross) project_in_place(weights, x, q, k, v);
  else if (s_.projection == ProjectionKind::separate) project(weights, x, cross ? encoded : x, q, k, v);
  else project_fused(weights, x, q, k, v);
  if (s_.positions == PositionKind::rotary && !cross && !latent && !s_.turned_in_place && s_.turns(number)) {
    const Rotation by = rotation_of_layer(around.by);
    Tensor moved_q = turned(q, by), moved_k = turned(k, by);
    q = std::move(moved_q);
    k = std::move(moved_k);
    if (s_.queries_by_position) q = scaled_by_position(q);
  }
  if (s_.output_modules) eager_.recorder.host(HostClass::python_fixed, kModulePython);
  if (!cross) site_.remember(k, v);
  if (!cross && length > 1 && site_.has_fixed_cache() && fuses() && !around.mask.defined())
    for (Tensor* all : {&k, &v}) all->sizes[2] = length;
  Tensor seen = s_.windowed(number) && around.window_mask.defined() ? around.window_mask : around.mask;
  if (s_.relative_each_layer)
    seen = cross ? aten::full(eager_, {1, s_.heads, length, k.sizes[2]}, q.type) : relative_bias(weights, length);
  if (s_.patch_distances) {
    const Tensor bias = patch_bias(weights);
    y = fuses() ? biased_attention(q, k, v, bias)
                : written_out(weights, q, k, v, bias, {}, masked, result.probabilities);
  } else if (s_.images_apart && fuses() && !cross) {
    y = attention_apart(q, k, v, number);
  } else if (fuses()) {
    y = fused_attention(q, k, v, cross && !s_.relative_each_layer ? Tensor{} : seen, s_.causal && !cross && length > 1);
  } else {
    Tensor added = cross && !s_.relative_each_layer ? Tensor{} : seen;
    if (!cross && around.bias.defined() && !s_.alibi_added) added = around.bias;
    if (weights.visible.defined() && !cross) added = corner(weights.visible, length, k.sizes[2]);
    y = s_.attention_code == AttentionCode::written_out_flat
            ? written_out_flat(q, k, v, added, result.probabilities)
            : written_out(weights, q, k, v, added, s_.alibi_added && !cross ? around.bias : Tensor{}, masked,
                          result.probabilities);
  }
  if (s_.plain) values = y;
  if (!s_.images_apart || !fuses() || cross) y = contiguous(eager_, transpose(eager_, y, 1, 2));
  y = view(eager_, y, {batch, length, y.sizes[2] * y.sizes[3]});
  if (gathers_heads()) y = split.own_columns(y);
  if (s_.output_modules) {
    context_ = y;
    for (Tensor* variable : {&q, &k, &v, &masked}) *variable = Tensor{};
  }
  result.result = dropped_inside(split.row_linear(y, weights.output));
  return result;
}

// Heads of all sequences are one dimension right away, and [tokens, heads, width] is a batch of matrices as it lies.
StackNetwork::Attended StackNetwork::attend_sequence_first(const AttentionWeights& weights, const Tensor& x,
                                                           const Around& around) {
  const std::int64_t length = x.sizes[0], batch = x.sizes[1], matrices = batch * s_.heads, width = s_.head_width();
  const auto heads = [&](const Affine& layer) {
    return transpose(eager_, view(eager_, site_.split.column_linear(x, layer), {length, matrices, width}), 0, 1);
  };
  Attended result;
  Tensor masked, v, k, q;
  q = heads(weights.query);
  k = heads(weights.key);
  v = heads(weights.value);
  eager_.recorder.host(HostClass::python_fixed, kModulePython);
  {
    Tensor scores = view(eager_, matmul(eager_, q, transpose(eager_, k, 1, 2)), {batch, s_.heads, length, length});
    scores = scale(eager_, scores);
    if (around.mask.defined()) masked = scores = add(eager_, scores, around.mask);
    scores = softmax(eager_, scores);
    scores = dropout(eager_, scores, s_.attention_dropout);
    result.probabilities = view(eager_, scores, {matrices, length, length});
    const Tensor y = matmul(eager_, result.probabilities, v);
    context_ = view(eager_, contiguous(eager_, transpose(eager_, y, 0, 1)), {length, batch, s_.heads * width});
  }
  for (Tensor* variable : {&q, &k, &v, &masked}) *variable = Tensor{};
  result.result = site_.split.row_linear(context_, weights.output);
  return result;
}

}  // namespace ridgeline::families

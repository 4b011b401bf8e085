// What a stack begins with: tables, patches or convolutions, positions, masks.
#include "sim/workload/aten/convolution.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

namespace aten = eager::aten;

bool StackNetwork::reads_rows_alone() const {
  return s_.input == InputKind::tokens && positions_.weight == nullptr && s_.positions != PositionKind::sinusoidal &&
         types_.weight == nullptr && s_.box_rows == 0 && !s_.embedding_norm && !s_.token_dropout && !s_.late_tokens &&
         projection_in_.weight == nullptr;
}

Tensor StackNetwork::embed(const Tensor& input, Around& around) {
  const ModuleScope module(eager_.recorder, "embeddings");
  const bool typed = s_.output_modules && types_.weight != nullptr;
  Tensor x;
  if (s_.input == InputKind::image) x = embed_image(input);
  else if (s_.input == InputKind::audio) x = embed_audio(input);
  else if (typed) x = embed_typed(input);
  else {
    if (s_.positions_from_tokens && positions_.weight == nullptr) counted_positions(input);  // nobody reads them
    x = site_.split.embedding(input, tokens_, reads_rows_alone());
    const bool keeps_rows = s_.causal && s_.positions == PositionKind::rotary;
    if ((keeps_rows && !s_.keeps_scaled_rows) || keeps_variables()) around.rows = x;
    if (s_.token_dropout) x = masked_rows_dropped(x, input);
    if (s_.embedding_scale) x = scale(eager_, x);
    if (keeps_rows && s_.keeps_scaled_rows) around.rows = x;
    if (types_.weight != nullptr) x = add(eager_, x, embedding(eager_, zero_types(input), types_));
  }
  // A table of positions as wide as the blocks is added after the projection.
  const bool projected = projection_in_.weight != nullptr;
  if (typed) return site_.split.own_sequence(projected ? linear(eager_, x, projection_in_) : x);
  if (projected && !s_.embedding_norm) x = linear(eager_, x, projection_in_);
  x = with_positions(std::move(x), input, around);
  if (s_.box_rows > 0) x = with_boxes(std::move(x), input);
  if (s_.embedding_norm) x = norm(x, embedding_norm_);
  if (s_.late_tokens) x = with_late_tokens(x);
  if (s_.embedding_dropout > 0.0 || (s_.plain && s_.residual_dropout)) x = dropout(eager_, x, s_.embedding_dropout);
  if (projected && s_.embedding_norm) x = linear(eager_, x, projection_in_);
  return reads_rows_alone() ? x : site_.split.own_sequence(x);
}

Tensor StackNetwork::embed_typed(const Tensor& ids) {
  const Tensor index = positions_.weight != nullptr ? position_index(ids, ids.sizes[1]) : Tensor{},
               types = zero_types(ids);
  Tensor position_rows, x, type_rows, word_rows;
  word_rows = site_.split.embedding(ids, tokens_, false);
  type_rows = embedding(eager_, types, types_);
  x = add(eager_, word_rows, type_rows);
  if (positions_.weight != nullptr) {
    position_rows = embedding(eager_, index, positions_);
    x = add(eager_, x, position_rows);
  }
  if (s_.box_rows > 0) x = with_boxes(std::move(x), ids);
  if (s_.embedding_norm) x = norm(x, embedding_norm_);
  return dropout(eager_, x, s_.embedding_dropout);
}

// Token types default to a gathered buffer of zeros, repeated for every sequence.
Tensor StackNetwork::zero_types(const Tensor& ids) {
  eager_.recorder.host(HostClass::pointwise);
  Tensor zeros = type_ids_;
  if (zeros.defined()) zeros.sizes[1] = ids.sizes[1];
  const Tensor types = eager_.empty({1, ids.sizes[1]}, DType::int64);
  if (zeros.defined()) aten::pointwise(eager_, PointwiseFunction::other, {&zeros}, types);
  else aten::pointwise(eager_, PointwiseFunction::gather, {}, types);
  return aten::expand(eager_, types, ids.sizes);
}

// Of a buffer, of what tokens say, or counted anew.
Tensor StackNetwork::position_index(const Tensor& ids, std::int64_t length) {
  if (s_.positions_from_tokens) return counted_positions(ids);
  if (keeps_variables()) return eager_.empty(ids.sizes, DType::int64);  // positions of every sequence
  if (s_.plain) return aten::arange(eager_, length, DType::int64);
  if (!position_ids_.defined()) return aten::unsqueeze(eager_, position_ids(eager_, length), 0);
  Tensor index = position_ids_;
  index.sizes[1] = length;
  return index;
}

// Masked tokens are treated as dropped ones: set to zero, and all rows made larger by the share of those that are left.
Tensor StackNetwork::masked_rows_dropped(const Tensor& rows, const Tensor& ids) {
  using F = PointwiseFunction;
  eager_.recorder.host(HostClass::pointwise, 9);
  const Dims flags{ids.sizes[0], ids.sizes[1], 1}, each{ids.sizes[0]}, column{ids.sizes[0], 1, 1};
  const Tensor masked = aten::plain(eager_, F::equal, flags, DType::boolean, {&ids});
  Tensor x = masked_fill(eager_, rows, masked);
  const Tensor again = aten::plain(eager_, F::equal, ids.sizes, DType::boolean, {&ids});
  const Tensor counted = eager_.empty(each, DType::int64);
  eager_.recorder.op(Reduction{ReductionKind::sum_cols, DType::int64, ids.sizes[0], ids.sizes[1]}, {&again},
                     {&counted});
  const Tensor number = aten::plain(eager_, F::cast, each, DType::fp32, {&counted}),
               share = aten::plain(eager_, F::divide, each, DType::fp32, {&number}),
               left = aten::plain(eager_, F::add, column, DType::fp32, {&share});
  x = aten::scale(eager_, x);
  x = aten::divide_by(eager_, x, left);
  return aten::to(eager_, x, rows.type);
}

// Sides, height and width of each token's box on its page: six rows of four tables, zeros where no boxes are given.
Tensor StackNetwork::with_boxes(Tensor rows, const Tensor& ids) {
  eager_.recorder.host(HostClass::pointwise, 3);
  const Tensor boxes = aten::full(eager_, {ids.sizes[0], ids.sizes[1], 4}, DType::int64);
  for (const std::size_t table : {0U, 1U, 0U, 1U, 2U, 3U}) {
    const Tensor side = aten::plain(eager_, PointwiseFunction::other, ids.sizes, DType::int64, {&boxes});
    rows = add(eager_, rows, embedding(eager_, side, boxes_[table]));
  }
  return rows;
}

// Further tokens between the class token and the patches, behind the sum with positions.
Tensor StackNetwork::with_late_tokens(const Tensor& x) {
  eager_.recorder.host(HostClass::concatenate);
  const Tensor first = aten::slice(eager_, x, 1, 1), patches = aten::slice(eager_, x, 1, x.sizes[1] - 1);
  const Tensor others = aten::expand(eager_, extra_tokens_->value, {x.sizes[0], s_.extra_tokens, s_.hidden});
  return aten::join(eager_, {&first, &others, &patches}, 1);
}

// The running number of every token that is no padding.
Tensor StackNetwork::counted_positions(const Tensor& ids) {
  using F = PointwiseFunction;
  eager_.recorder.host(HostClass::pointwise, 7);
  const auto made = [&](F function, DType type, std::initializer_list<const Tensor*> from) {
    return aten::plain(eager_, function, ids.sizes, type, from);
  };
  Tensor running, there;
  {
    const Tensor kept = made(F::equal, DType::boolean, {&ids});
    there = made(F::cast, DType::int32, {&kept});
  }
  {
    const Tensor wide = made(F::cast, DType::int64, {&there});
    const Tensor sums = eager_.empty(ids.sizes, DType::int64);
    eager_.recorder.op(Reduction{ReductionKind::scan_cols, DType::int64, ids.sizes[0], ids.sizes[1]}, {&wide}, {&sums});
    running = made(F::cast, DType::int32, {&sums});
  }
  running = made(F::mul, DType::int32, {&running, &there});
  running = made(F::cast, DType::int64, {&running});
  return aten::add_number(eager_, running);
}

Tensor StackNetwork::with_positions(Tensor rows, const Tensor& ids, Around& around) {
  const std::int64_t length = rows.sizes[1];
  if (s_.positions == PositionKind::sinusoidal) {
    Tensor table = frozen_positions_;
    table.sizes[0] = length;
    if (s_.input == InputKind::tokens) {
      const Tensor index = aten::arange(eager_, length, DType::int64);
      Tensor picked = eager_.empty({1, length, s_.hidden}, table.type);
      eager_.recorder.op(Embedding{false, table.type, length, table.sizes[0], s_.hidden}, {&table, &index}, {&picked});
      return add(eager_, rows, picked);
    }
    return add(eager_, rows, table);
  }
  if (positions_.weight == nullptr) return rows;
  if (s_.input == InputKind::image && s_.head == HeadKind::image_classification && !s_.positions_picked)
    return add(eager_, rows, aten::unsqueeze(eager_, positions_.weight->value, 0));
  Tensor index = position_index(ids, length);
  const Tensor picked = embedding(eager_, index, positions_);
  index = Tensor{};
  if (keeps_variables()) around.position_rows = picked;
  Tensor sum = add(eager_, rows, picked);
  rows = Tensor{};
  return sum;
}

Tensor StackNetwork::embed_image(const Tensor& pixels) {
  const std::int64_t batch = pixels.sizes[0], side = s_.image_size / s_.patch, patches = side * side;
  // A convolution whose stride is its kernel: the product of patches and the kernel's rows.
  eager_.recorder.host(HostClass::convolution);
  Tensor x = aten::patches(
      eager_, eager_.autocast.lowered(eager_, pixels), eager_.autocast.lowered(eager_, patches_.weight->value),
      patches_.bias != nullptr ? eager_.autocast.lowered(eager_, patches_.bias->value) : Tensor{}, s_.patch);
  x = transpose(eager_, view(eager_, x, {batch, s_.hidden, patches}), 1, 2);
  if (class_token_ == nullptr) return x;
  eager_.recorder.host(HostClass::concatenate);
  const Tensor token = aten::expand(eager_, class_token_->value, {batch, 1, s_.hidden});
  if (extra_tokens_ == nullptr || s_.late_tokens) return aten::join(eager_, {&token, &x}, 1);
  const Tensor others = aten::expand(eager_, extra_tokens_->value, {batch, s_.extra_tokens, s_.hidden});
  return aten::join(eager_, {&token, &others, &x}, 1);
}

Tensor StackNetwork::embed_audio(const Tensor& spectrogram) {
  const auto convolved = [&](const Tensor& x, const Affine& weights, std::int64_t stride) {
    eager_.recorder.host(HostClass::convolution);
    const Tensor bias = eager_.autocast.lowered(eager_, weights.bias->value);
    return aten::convolution_over_time(eager_, eager_.autocast.lowered(eager_, x),
                                       eager_.autocast.lowered(eager_, weights.weight->value), bias, stride);
  };
  Tensor x = activate(eager_, convolved(spectrogram, convolution_one_, 1), aten::ActivationKind::gelu);
  x = activate(eager_, convolved(x, convolution_two_, 2), aten::ActivationKind::gelu);
  return aten::permute(eager_, x, {0, 2, 1});
}

Tensor StackNetwork::visibility(std::int64_t rows, std::int64_t length) {
  eager_.recorder.host(HostClass::pointwise, 8);
  using F = PointwiseFunction;
  const Tensor places = aten::arange(eager_, length, DType::int64), others = aten::arange(eager_, length, DType::int64);
  const Dims sizes{1, 1, length, length};
  Tensor seen = aten::plain(eager_, F::other, sizes, DType::boolean, {&places, &others});
  const Tensor near = aten::plain(eager_, F::other, sizes, DType::boolean, {&places, &others});
  seen = aten::plain(eager_, F::other, sizes, DType::boolean, {&seen, &near});
  return aten::expand(eager_, seen, {rows, 1, length, length});
}

// Of a stack that reads tokens, whatever its mask would hide; relative positions have theirs added anyway.
bool StackNetwork::gets_mask() const {
  return (site_.training.mask_given || site_.training.mask_of_padding) && s_.takes_mask() &&
         site_.attention != AttentionChoice::math;
}

void StackNetwork::look_around(const Tensor& x, const Tensor& encoded, const Tensor& given, Around& around) {
  around.encoded = encoded;
  if (s_.plain && s_.positions == PositionKind::learned && (fuses() || s_.mask_filled)) return;  // nothing to make
  const ModuleScope module(eager_.recorder, "positions");
  const std::int64_t rows = x.sizes[0], length = site_.split.whole_length(x.sizes[1]);
  Tensor& positions = around.positions;
  const bool rotary = s_.positions == PositionKind::rotary;
  if (site_.generates() && !s_.plain) {
    positions = given;
    look_for_padding();
  } else if (!s_.plain && (rotary || (s_.causal && s_.input == InputKind::tokens))) {
    positions = position_ids(eager_, length);
  }
  bool narrow = false, wide = false;
  for (std::int64_t i = 0; i < s_.layers; ++i) (s_.windowed(i) ? narrow : wide) = true;
  // Whoever makes a mask of given positions looks: of layers with a window, and of the others.
  if (positions.defined() && s_.causal && s_.looks_for_documents && !s_.cross_attention && !site_.generates())
    for (int masks = (narrow ? 1 : 0) + (wide ? 1 : 0); masks > 0; --masks)
      look_for_packed_sequences(eager_, positions, rows, length);
  make_masks(x, narrow && length > s_.window, around);
  if (s_.positions == PositionKind::relative && !s_.relative_each_layer) {
    around.bias = relative_bias(layers_.front().attention, length);
    if (s_.relative_in_place) {
      // One copy for each sequence.
      const Dims all{rows, s_.heads, length, length};
      around.bias = contiguous(eager_, aten::expand(eager_, around.bias, all));
    }
    if (fuses()) around.mask = around.bias;
  }
  if (s_.positions == PositionKind::disentangled) look_at_distances(rows, length, around);
  if (rotary && s_.rotary_table) {
    const Tensor index = aten::arange(eager_, length, DType::int64);
    const Tensor picked = eager_.empty({1, 1, length, s_.turned()}, site_.type);
    eager_.recorder.op(Embedding{false, site_.type, length, s_.max_positions, s_.turned()},
                       {&frozen_positions_, &index}, {&picked});
    around.by = {picked, picked};
  } else if (rotary) {
    const DType type = s_.rotary_angles_fp32 ? DType::fp32 : x.type;
    around.by = s_.plain ? counted_rotation(length, type)
                         : rotation(eager_, positions, frequencies_, length, s_.turned(), type);
  }
}

void StackNetwork::make_masks(const Tensor& x, bool narrow, Around& around) {
  const std::int64_t rows = x.sizes[0], length = site_.split.whole_length(x.sizes[1]);
  if (fuses()) {
    if (narrow) around.window_mask = visibility(rows, length);
    if (s_.always_masked) around.mask = visibility(rows, length);
    if (s_.positions == PositionKind::alibi) around.mask = alibi(rows, length);
    // The tokens of a prompt are the first of the cache: a causal kernel hides what lies behind them.
    if (!around.mask.defined() && site_.has_fixed_cache() && !s_.plain && length == 1)
      around.mask = causal_mask(eager_, DType::boolean, rows, length, site_.visible_keys());
    if (!around.mask.defined() && gets_mask()) {
      const DType type = eager_.autocast.on() ? eager_.autocast.type() : x.type;
      around.mask = s_.causal ? causal_mask(eager_, type, rows, length, length)
                              : aten::plain(eager_, PointwiseFunction::other, {rows, 1, length, length}, type, {});
    }
    return;
  }
  if (!s_.causal && s_.output_modules && s_.takes_mask() && site_.attention == AttentionChoice::eager &&
      s_.adds_mask.value_or(site_.training.mask_always_added)) {
    // Zero for every token of every sequence.
    eager_.recorder.host(HostClass::pointwise, 3);
    const Tensor ones = aten::full(eager_, {site_.place.rows, 1, 1, site_.place.length}, site_.type);
    const Tensor hidden = aten::add_number(eager_, ones);
    around.mask = aten::scale(eager_, hidden);
  }
  if (!s_.causal || s_.positions == PositionKind::relative || (s_.plain && s_.mask_filled)) return;
  const std::int64_t seen = site_.generates() ? site_.visible_keys() : length;
  around.mask = causal_mask(eager_, x.type, rows, length, seen);
  if (narrow) around.window_mask = causal_mask(eager_, x.type, rows, length, seen);
  // Slopes go into the product of queries and keys, or are added to it.
  if (s_.positions == PositionKind::alibi) around.bias = alibi(rows, length);
  if (!s_.alibi_added) around.bias = Tensor{};
}

void StackNetwork::look_for_padding() {
  const Dims tokens{site_.place.rows, site_.place.past + site_.place.length};
  eager_.recorder.host(HostClass::pointwise, 4);
  const Tensor there = eager_.empty(tokens, DType::boolean);
  aten::pointwise(eager_, PointwiseFunction::cast, {}, there);
  const Tensor count = eager_.empty({}, DType::int64), whole = eager_.empty({}, DType::boolean);
  eager_.recorder.op(Reduction{ReductionKind::sum_all, DType::int64, 1, tokens.product()}, {&there}, {&count});
  aten::pointwise(eager_, PointwiseFunction::equal, {&count}, whole);
  eager_.recorder.op(Copy{CopyKind::device_to_host, DType::boolean, 1, 1, 1}, {&whole}, {});
  eager_.recorder.wait_for_gpu();
}

// Distances in buckets, a number of each head for each of them, in the order of scores.
Tensor StackNetwork::relative_bias(const AttentionWeights& weights, std::int64_t length) {
  eager_.recorder.host(HostClass::pointwise, 14);
  using F = PointwiseFunction;
  const Dims sizes{length, length};
  Tensor buckets;
  if (s_.relative_in_place) {  // counted by the host
    buckets = eager_.empty(sizes, DType::int64);
    eager_.recorder.op(Copy{CopyKind::pageable_to_device, DType::int64, length, length, 1}, {}, {&buckets});
  } else {
    const Tensor places = aten::arange(eager_, length, DType::int64),
                 others = aten::arange(eager_, length, DType::int64);
    const Tensor distance = aten::plain(eager_, F::add, sizes, DType::int64, {&others, &places});
    Tensor far = aten::plain(eager_, F::cast, sizes, DType::fp32, {&distance});
    for (int i = 0; i < 4; ++i) far = aten::plain(eager_, F::other, sizes, DType::fp32, {&far});
    const Tensor whole = aten::plain(eager_, F::cast, sizes, DType::int64, {&far}),
                 small = aten::plain(eager_, F::other, sizes, DType::boolean, {&distance});
    buckets = aten::plain(eager_, F::other, sizes, DType::int64, {&small, &distance, &whole});
  }
  const Tensor values = embedding(eager_, buckets, weights.relative);
  Tensor bias = aten::unsqueeze(eager_, aten::permute(eager_, values, {2, 0, 1}), 0);
  if (s_.causal) {
    const Tensor mask = causal_mask(eager_, bias.type, site_.training.micro_batch, length, length);
    bias = add(eager_, bias, mask);
  }
  return bias;
}

Tensor StackNetwork::alibi(std::int64_t rows, std::int64_t length) {
  eager_.recorder.host(HostClass::pointwise, 6);
  const Tensor places = aten::arange(eager_, length, DType::int64);
  const Tensor slopes = aten::full(eager_, {s_.heads, 1, 1}, DType::fp32);
  return aten::plain(eager_, PointwiseFunction::mul, {rows, s_.heads, 1, length}, site_.type, {&slopes, &places});
}

}  // namespace ridgeline::families

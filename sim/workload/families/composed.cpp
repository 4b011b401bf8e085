#include "sim/workload/families/composed.h"

#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/chunked_loss.h"
#include "sim/workload/families/stack_split.h"

namespace ridgeline::families {

namespace aten = eager::aten;

// Variables are declared so that they die in the order in which Python clears a function's: the C++ order is reversed.

Composed::Composed(Eager& eager, const ModelDescription& model, const TrainingDescription& training,
                   AttentionChoice attention)
    : Family(eager, model, training, attention),
      share_(tensor_ ? std::optional(share_of(*model.composition, training.parallel.tensor)) : std::nullopt),
      composition_(share_ ? *share_ : *model.composition),
      site_{eager,
            type(),
            training,
            attention,
            [this](const std::function<Tensor(Eager&, Tensor)>& block, Tensor x) {
              return run_block(block, std::move(x));
            },
            [this](Tensor& keys, Tensor& values) { remember(keys, values); },
            [this] { return store != nullptr; },
            [this](const Dims& sizes) { return parameter(sizes); },
            [this](std::int64_t out, std::int64_t in, bool bias, std::optional<LinearRole> role, bool by_inputs) {
              return linear_layer(out, in, bias, role, by_inputs);
            },
            [this](const Tensor& x) { return enter_split(x); },
            [this](const Tensor& x, const Affine& layer) { return row_linear(x, layer); }} {
  if (training.parallel.expert > 1) {
    ranks_of_experts_.emplace(eager, training.parallel);
    site_.ranks_of_experts = &*ranks_of_experts_;
    site_.parameter_of_experts = [this](const Dims& sizes) { return parameter_of_experts(sizes); };
  }
  const Stack& s = composition_.stack;
  std::int16_t blocks = 0;
  if (composition_.encoder) {
    const ModuleScope module(eager.recorder, "encoder");
    encoder_.emplace(*composition_.encoder, site_, blocks);
    blocks = static_cast<std::int16_t>(composition_.encoder->layers);
  }
  // Encoder and decoder of one text share the table of tokens.
  const bool shared =
      encoder_ && composition_.encoder->input == InputKind::tokens && s.input == InputKind::tokens && s.cross_attention;
  {
    std::optional<ModuleScope> module;
    if (encoder_) module.emplace(eager.recorder, "decoder");
    stack_.emplace(s, site_, blocks, shared ? &encoder_->tokens() : nullptr);
  }
  const ModuleScope head(eager.recorder, "head");
  make_head();
}

void Composed::make_head() {
  const Stack& s = composition_.stack;
  StackNetwork& at = *stack_;
  const std::int64_t width = s.table_width();
  switch (s.head) {
    case HeadKind::none: return;
    case HeadKind::masked_lm:
    case HeadKind::language_model:
      if (s.head_transform) {
        transform_ = at.linear_layer(width, s.hidden, s.head_transform_bias);
        transform_norm_ = at.norm_layer(width);
      }
      head_ = s.tie_embeddings ? at.tokens() : at.linear_layer(s.vocabulary, width, false);
      if (s.head_bias) head_.bias = at.parameter({s.vocabulary});
      if (s.logit_offset) logit_offset_ = buffer({1, s.vocabulary}, type());
      return;
    case HeadKind::sequence_classification:
    case HeadKind::token_classification:
    case HeadKind::image_classification:
      trains_head_ = true;
      if (s.pooler == PoolerKind::dense_tanh || s.pooler == PoolerKind::dense_activation)
        pooler_ = at.linear_layer(s.hidden, s.hidden, true);
      if (s.pooler == PoolerKind::mean_norm) pooler_norm_ = at.norm_layer(s.hidden);
      head_ = at.linear_layer(s.labels, s.pooler == PoolerKind::class_and_mean ? 2 * s.hidden : s.out_width(),
                              !scores_every_token());
      return;
    case HeadKind::question_answering:
      trains_head_ = true;
      head_ = at.linear_layer(2, s.hidden, true);
      return;
    case HeadKind::contrastive:
      other_projection_ = at.linear_layer(s.projection_width, composition_.encoder->hidden, false);
      projection_ = at.linear_layer(s.projection_width, s.hidden, false);
      temperature_ = at.parameter({});
      return;
  }
}

std::int64_t Composed::frozen() const {
  return Family::frozen() + stack_->frozen() + (encoder_ ? encoder_->frozen() : 0);
}

Tensor Composed::loss(const Batch& batch) {
  const Stack& s = composition_.stack;
  Tensor encoded, x;
  if (encoder_) {
    const ModuleScope module(eager_.recorder, "encoder");
    encoded = encoder_->run(batch.features);
  }
  x = run_stack(batch.tokens, s.cross_attention ? encoded : Tensor{});
  stack_->run_unread_top(x);
  const ModuleScope head(eager_.recorder, "head");
  switch (s.head) {
    case HeadKind::masked_lm: return masked_loss(x, batch.targets[0]);
    case HeadKind::language_model: return next_token_loss(std::move(x), batch.targets[0]);
    case HeadKind::sequence_classification:
    case HeadKind::token_classification:
    case HeadKind::image_classification: return class_loss(x, batch.targets[0]);
    case HeadKind::question_answering: return span_loss(x, batch);
    case HeadKind::contrastive: return contrastive_loss(x, encoded);
    case HeadKind::none: break;
  }
  eager_.recorder.host(HostClass::pointwise);
  return aten::mean_all(eager_, x);
}

Tensor Composed::next_logits(const Tensor& tokens, const Tensor& positions) {
  const Stack& s = composition_.stack;
  if (encoder_ || !s.causal || s.head != HeadKind::language_model) return Family::next_logits(tokens, positions);
  const Tensor x = run_stack(tokens, {});
  const ModuleScope head(eager_.recorder, "head");
  return logits_of(last_token(x));
}

Tensor Composed::run_stack(const Tensor& input, const Tensor& encoded) {
  if (!encoder_) return stack_->run(input, encoded);
  const ModuleScope module(eager_.recorder, "decoder");
  return stack_->run(input, encoded);
}

Tensor Composed::logits_of(const Tensor& x) {
  const Stack& s = composition_.stack;
  Tensor h = x;
  if (s.head_transform) {
    h = linear(eager_, h, transform_);
    h = stack_->activated(h, s.activation);
    h = stack_->norm(h, transform_norm_);
  }
  if (stack_->output_projection().weight != nullptr && !s.head_transform)
    h = linear(eager_, h, stack_->output_projection());
  if (s.head_scale) h = scale(eager_, h);
  Tensor logits = linear(eager_, h, head_);
  if (s.logit_scale) logits = scale(eager_, logits);
  if (s.logit_offset) logits = add(eager_, logits, logit_offset_);
  if (s.logit_cap > 0.0) {
    eager_.recorder.host(HostClass::pointwise, 3);
    logits = aten::soft_cap(eager_, logits);
  }
  return logits;
}

Tensor Composed::row_losses(const Tensor& logits, const Tensor& labels) {
  const ModuleScope module(eager_.recorder, "loss");
  const std::int64_t classes = logits.sizes.last();
  return cross_entropy(eager_, view(eager_, logits, {logits.elements() / classes, classes}),
                       view(eager_, labels, {labels.elements()}));
}

Tensor Composed::next_token_loss(Tensor x, const Tensor& labels) {
  if (site_.training.loss_code == LossCode::chunked) return chunked_loss(eager_, x, head_, labels);
  Tensor logits, targets, padded, wide;  // scores go with what the network gives back, after the loss's own
  logits = logits_of(x);
  x = Tensor{};
  // An encoder's labels stand where they are; its loss is taken as the scores come.
  if (composition_.stack.cross_attention) return row_losses(logits, labels);
  wide = composition_.stack.loss_fp32 ? aten::to(eager_, logits, DType::fp32) : logits;
  eager_.recorder.host(HostClass::pointwise, 4);
  // Labels move one place to the left: padded on the right, cut on the left, made contiguous.
  padded = aten::full(eager_, {labels.sizes[0], labels.sizes[1] + 1}, DType::int64);
  eager_.recorder.op(Copy{CopyKind::permute, DType::int64, labels.sizes[0], labels.sizes[1], 1}, {&labels}, {&padded});
  Tensor shifted = padded;
  shifted.sizes = labels.sizes;
  targets = aten::contiguous(eager_, shifted);
  shifted = Tensor{};
  return row_losses(wide, targets);
}

Tensor Composed::masked_loss(const Tensor& x, const Tensor& labels) {
  const Tensor logits = logits_of(x);
  const Tensor wide = composition_.stack.masked_loss_fp32 ? aten::to(eager_, logits, DType::fp32) : logits;
  return row_losses(wide, labels);
}

Tensor Composed::first_tokens(const Tensor& x) {
  eager_.recorder.host(HostClass::view);
  return aten::select_first(eager_, x);
}

Tensor Composed::mean_tokens(const Tensor& x) {
  eager_.recorder.host(HostClass::pointwise);
  return aten::mean_middle(eager_, x);
}

// A decoder's last token has seen all others. Whether a token is padding is asked of all of them first.
bool Composed::scores_every_token() const {
  const Stack& s = composition_.stack;
  return s.causal && !encoder_ && s.head == HeadKind::sequence_classification && s.pooler == PoolerKind::none;
}

Tensor Composed::last_scores(const Tensor& scores) {
  using F = PointwiseFunction;
  const Dims tokens{scores.sizes[0], scores.sizes[1]};
  eager_.recorder.host(HostClass::pointwise, 7);
  const Tensor there = aten::plain(eager_, F::equal, tokens, DType::boolean, {&scores}),
               as_number = aten::plain(eager_, F::cast, tokens, DType::int32, {&there}),
               number = aten::arange(eager_, tokens[1], DType::int32),
               last = aten::plain(eager_, F::mul, tokens, DType::int32, {&as_number, &number});
  eager_.recorder.op(Reduction{ReductionKind::sum_cols, DType::int32, tokens[0], tokens[1]}, {&last}, {&number});
  return aten::select_first(eager_, scores);
}

Tensor Composed::class_loss(const Tensor& x, const Tensor& labels) {
  const Stack& s = composition_.stack;
  if (scores_every_token()) return row_losses(last_scores(linear(eager_, x, head_)), labels);
  Tensor logits, pooled;
  pooled = s.head == HeadKind::token_classification ? x
           : s.pooler == PoolerKind::mean           ? mean_tokens(x)
           : s.pooler == PoolerKind::mean_patches   ? mean_tokens(aten::slice(eager_, x, 1, x.sizes[1] - 1))
           : s.pooler == PoolerKind::mean_norm
               ? stack_->norm(mean_tokens(aten::slice(eager_, x, 1, x.sizes[1] - 1)), pooler_norm_)
               : first_tokens(x);
  if (s.pooler == PoolerKind::class_and_mean) {
    const Tensor others = mean_tokens(aten::slice(eager_, x, 1, x.sizes[1] - 1 - (s.late_tokens ? s.extra_tokens : 0)));
    eager_.recorder.host(HostClass::concatenate);
    pooled = aten::join(eager_, {&pooled, &others});
  }
  if (pooler_.weight != nullptr) {
    pooled = dropout(eager_, pooled, s.dropout);
    pooled = linear(eager_, pooled, pooler_);
    pooled = stack_->activated(pooled, s.pooler == PoolerKind::dense_tanh ? ComposedActivation::tanh : s.activation);
    pooled = dropout(eager_, pooled, s.dropout);
  }
  logits = linear(eager_, pooled, head_);
  return row_losses(logits, labels);
}

Tensor Composed::span_loss(const Tensor& x, const Batch& batch) {
  const Tensor logits = linear(eager_, x, head_);
  eager_.recorder.host(HostClass::split);
  const auto parts = aten::split_last<2>(eager_, logits);
  std::vector<Tensor> ends;
  for (const Tensor& part : parts)
    ends.push_back(contiguous(eager_, view(eager_, part, {logits.sizes[0], logits.sizes[1]})));
  const Tensor first = cross_entropy(eager_, ends[0], batch.targets[0]);
  const Tensor second = cross_entropy(eager_, ends[1], batch.targets[1]);
  const Tensor sum = add(eager_, first, second);
  eager_.recorder.host(HostClass::loss_division);
  return aten::divide(eager_, sum);
}

// Unit vectors of both towers, all against all, and the mean of two cross entropies.
Tensor Composed::contrastive_loss(const Tensor& x, const Tensor& other) {
  const auto unit = [&](const Tensor& features) {
    eager_.recorder.host(HostClass::pointwise, 3);
    const Tensor squares = aten::square(eager_, features);
    const Tensor norm = aten::rsqrt(eager_, aten::mean_last(eager_, squares));
    return aten::mul(eager_, features, norm);
  };
  const Tensor image = unit(linear(eager_, first_tokens(other), other_projection_));
  const Tensor text = unit(linear(eager_, first_tokens(x), projection_));
  eager_.recorder.host(HostClass::matmul);
  const Tensor left = eager_.autocast.lowered(eager_, text),
               right = aten::t(eager_, eager_.autocast.lowered(eager_, image));
  Tensor scores = aten::mm(eager_, left, right);
  scores = aten::mul(eager_, scores, temperature_->value);
  const Tensor places = aten::arange(eager_, scores.sizes[0], DType::int64);
  const Tensor of_text = row_losses(scores, places);
  const Tensor turned = contiguous(eager_, aten::t(eager_, scores));
  const Tensor of_image = row_losses(turned, places);
  const Tensor sum = add(eager_, of_text, of_image);
  eager_.recorder.host(HostClass::loss_division);
  return aten::divide(eager_, sum);
}

namespace {

Tensor input_of(Eager& eager, const Dims& sizes, DType type) {
  Tensor result = eager.empty(sizes, type);
  eager.recorder.set_category(result.storage.id(), Category::inputs);
  return result;
}

/// What a stack reads: `length` tokens of each sequence, an image, or a spectrogram of two frames a position; pixels
/// and frames come in the type of the weights.
Tensor features_of(Eager& eager, const Stack& s, std::int64_t rows, std::int64_t length, DType type) {
  switch (s.input) {
    case InputKind::tokens: return input_of(eager, {rows, length}, DType::int64);
    case InputKind::image: return input_of(eager, {rows, s.channels, s.image_size, s.image_size}, type);
    case InputKind::audio: return input_of(eager, {rows, s.audio_bins, 2 * s.max_positions}, type);
  }
  return {};
}

}  // namespace

Batch make_composed_batch(Eager& eager, const Composition& composition, const TrainingDescription& training) {
  const Stack& s = composition.stack;
  const std::int64_t rows = training.micro_batch, length = training.sequence_length,
                     own = s.cross_attention && s.target_length > 0 ? s.target_length : length;
  const DType type = type_of_parameters(training);
  Batch batch;
  if (composition.encoder) batch.features = features_of(eager, *composition.encoder, rows, length, type);
  batch.tokens = features_of(eager, s, rows, own, type);
  switch (s.head) {
    case HeadKind::sequence_classification:
    case HeadKind::image_classification: batch.targets = {input_of(eager, {rows}, DType::int64)}; break;
    case HeadKind::question_answering:
      batch.targets = {input_of(eager, {rows}, DType::int64), input_of(eager, {rows}, DType::int64)};
      break;
    case HeadKind::token_classification:
    case HeadKind::masked_lm:
    case HeadKind::language_model: batch.targets = {batch.tokens}; break;  // trained on what they read
    case HeadKind::contrastive:
    case HeadKind::none: break;
  }
  return batch;
}

}  // namespace ridgeline::families

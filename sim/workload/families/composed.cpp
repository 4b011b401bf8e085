#include "sim/workload/families/composed.h"

#include <algorithm>

#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/chunked_loss.h"
#include "sim/workload/families/key_value_store.h"
#include "sim/workload/families/stack_split.h"

namespace ridgeline::families {

namespace aten = eager::aten;

// Variables are declared so that they die in the order in which Python clears a function's: the C++ order is reversed.

Composed::Composed(Eager& eager, const ModelDescription& model, CompositionHandle composition,
                   const TrainingDescription& training, AttentionChoice attention)
    : Family(eager, model, training, attention),
      whole_(std::move(composition)),
      share_(tensor_ ? std::optional(share_of(*whole_, training.parallel.tensor)) : std::nullopt),
      composition_(share_ ? *share_ : *whole_),
      site_{eager,
            type(),
            training,
            attention,
            [this](const std::function<Tensor(Eager&, Tensor)>& block, Tensor x) {
              return run_block(block, std::move(x));
            },
            [this](Tensor& keys, Tensor& values) { remember(keys, values); },
            [this] { return generates_; },
            [this] { return store != nullptr; },
            [this] { return store != nullptr && store->fixed(); },
            [this] { return visible_keys(); },
            place,
            [this](const Dims& sizes, DType kept) { return buffer(sizes, kept); },
            [this](const Dims& sizes) { return parameter(sizes); },
            [this](std::int64_t out, std::int64_t in, bool bias, std::optional<LinearRole> role, bool by_inputs) {
              return linear_layer(out, in, bias, role, by_inputs);
            },
            split_} {
  if (training.parallel.expert > 1) {
    ranks_of_experts_.emplace(eager, training.parallel);
    site_.ranks_of_experts = &*ranks_of_experts_;
    site_.parameter_of_experts = [this](const Dims& sizes) { return parameter_of_experts(sizes); };
  }
  if (training.lora && training.lora->saves_embeddings)
    site_.token_table = [this](const Dims& sizes) { return saved_copy(sizes); };
  if (context_) site_.context = &*context_;
  for (const StagePart& part : parts_) make_part(part);
}

void Composed::make_part(const StagePart& part) {
  const Stack& s = composition_.stack;
  Towers& towers = towers_.emplace_back();
  const std::int64_t blocks = blocks_of_encoder();
  if (part.first < blocks) {
    const ModuleScope module(eager_.recorder, "encoder");
    const StagePart own{part.first, std::min(part.last, blocks), part.embedding, part.last >= blocks};
    towers.encoder.emplace(*composition_.encoder, site_, 0, own);
  }
  if (s.image_rows) image_rows_.emplace(composition_, site_);
  // Encoder and decoder of one text share the table of tokens, where one stage holds both.
  const bool shared = towers.encoder && part.embedding && composition_.encoder->input == InputKind::tokens &&
                      s.input == InputKind::tokens && s.cross_attention;
  if (part.last > blocks) {
    std::optional<ModuleScope> module;
    if (composition_.encoder) module.emplace(eager_.recorder, "decoder");
    towers.embeds = composition_.encoder ? part.first <= blocks : part.embedding;
    const StagePart own{std::max<std::int64_t>(0, part.first - blocks), part.last - blocks, towers.embeds, part.head};
    towers.stack.emplace(s, site_, static_cast<std::int16_t>(blocks), own,
                         shared ? &towers.encoder->tokens() : nullptr);
  }
  if (part.head) {
    const ModuleScope head(eager_.recorder, "head");
    make_head(part);
  }
  part_ends.push_back(parameters.size());
}

void Composed::make_head(const StagePart& part) {
  const Stack& s = composition_.stack;
  StackNetwork& at = top();
  const std::int64_t width = s.table_width();
  switch (s.head) {
    case HeadKind::none: return;
    case HeadKind::pretraining:
    case HeadKind::masked_lm:
    case HeadKind::language_model: {
      if (s.pooler == PoolerKind::pretrained_tanh) pooler_ = at.linear_layer(s.hidden, s.hidden, true);
      // A parameter of the outer module is first in order and last on the device.
      Parameter* bias = s.head_bias && s.output_modules ? unallocated_parameter() : nullptr;
      if (s.head_transform) {
        transform_ = at.linear_layer(width, s.hidden, s.head_transform_bias);
        transform_norm_ = at.norm_layer(width);
      }
      head_ = s.tie_embeddings && part.embedding
                  ? at.tokens()
                  : at.linear_layer(split_.vocabulary(s.vocabulary), width, false, LinearRole::head);
      if (bias != nullptr) allocate(*bias, {split_.vocabulary(s.vocabulary)}, type());
      else if (s.head_bias) bias = at.parameter({split_.vocabulary(s.vocabulary)});
      head_.bias = bias;
      if (s.head == HeadKind::pretraining) relation_ = at.linear_layer(2, s.hidden, true);
      if (s.logit_offset)
        logit_offset_ = buffer({1, split_.splits_logits() ? split_.vocabulary(s.vocabulary) : s.vocabulary}, type());
      return;
    }
    case HeadKind::sequence_classification:
    case HeadKind::token_classification:
    case HeadKind::image_classification:
      if (s.pooler == PoolerKind::pretrained_tanh) pooler_ = at.linear_layer(s.hidden, s.hidden, true);
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
      if (s.pair_loss) {
        pair_head_.emplace(eager_, at, s, *composition_.encoder);
        return;
      }
      other_projection_ = at.linear_layer(s.projection_width, composition_.encoder->hidden, false);
      projection_ = at.linear_layer(s.projection_width, s.hidden, false);
      temperature_ = at.parameter({});
      return;
  }
}

std::int64_t Composed::frozen() const {
  std::int64_t frozen = Family::frozen();
  for (const Towers& part : towers_)
    frozen += (part.encoder ? part.encoder->frozen() : 0) + (part.stack ? part.stack->frozen() : 0);
  return frozen;
}

Tensor Composed::loss(const Batch& batch) {
  const Stack& s = composition_.stack;
  Output output;  // scores go with what the network gives back, after its own variables
  Tensor encoded, x;
  if (auto& encoder = towers_.back().encoder) {
    const ModuleScope module(eager_.recorder, "encoder");
    encoded = encoder->run(batch.features);
  }
  if (image_rows_) {
    top().add_behind_layers(image_rows_->deep_rows(encoded));
    encoded = image_rows_->rows(std::exchange(encoded, Tensor{}));
  }
  x = run_stack(batch.tokens, s.cross_attention || image_rows_ ? encoded : Tensor{});
  x = for_head(std::move(x));
  if (s.head == HeadKind::contrastive) encoded = split_.whole_sequence(encoded);
  top().run_unread_top(x);
  const ModuleScope head(eager_.recorder, "head");
  if (pair_head_) return pair_head_->loss(x, encoded);
  if (s.head == HeadKind::contrastive) return contrastive_loss(x, encoded);
  if (s.head == HeadKind::language_model && site_.training.loss_code != LossCode::whole) {
    top().forget();
    return loss_in_chunks(eager_, site_.training, x, head_, batch.targets[0]);
  }
  // A decoder beside an encoder and plain code give their hidden states up, others have them in a variable.
  output = output_of(s.plain || (s.head == HeadKind::language_model && s.cross_attention) ? std::move(x) : x);
  Tensor result = loss_of(output, batch.targets);
  top().forget();
  return result;
}

// Other heads than those that score every token are whole on every rank, and read whole sequences.
Tensor Composed::for_head(Tensor x) {
  const HeadKind head = composition_.stack.head;
  return head == HeadKind::language_model || head == HeadKind::masked_lm || head == HeadKind::pretraining
             ? x
             : split_.whole_sequence(x);
}

Composed::Output Composed::output_of(Tensor x) {
  const Stack& s = composition_.stack;
  switch (s.head) {
    case HeadKind::masked_lm:
    case HeadKind::language_model: return {logits_of(x), {}};
    case HeadKind::pretraining: {
      const Tensor pooled = pooled_by_dense(first_tokens(x));
      Tensor logits = logits_of(x);
      return {std::move(logits), linear(eager_, pooled, relation_)};
    }
    case HeadKind::sequence_classification:
    case HeadKind::token_classification:
    case HeadKind::image_classification: return class_scores(x);
    case HeadKind::question_answering: return {linear(eager_, x, head_), {}};
    case HeadKind::contrastive:
    case HeadKind::none: break;
  }
  return {std::move(x), {}};
}

std::vector<Tensor> Composed::run_part(std::size_t part, const Batch& batch, std::vector<Tensor> received) {
  Towers& at = towers_[part];
  Tensor encoded, x;
  if (at.encoder) {
    const ModuleScope module(eager_.recorder, "encoder");
    encoded = at.encoder->run(parts_[part].embedding ? batch.features : received.front());
    received.clear();
    if (!at.stack) return {encoded};
  } else if (composition_.encoder) {
    encoded = received.back();
  }
  {
    std::optional<ModuleScope> module;
    if (composition_.encoder) module.emplace(eager_.recorder, "decoder");
    x = at.stack->run(at.embeds ? batch.tokens : received.front(), encoded);
  }
  received.clear();
  if (!parts_[part].head) return encoded.defined() ? std::vector<Tensor>{x, encoded} : std::vector<Tensor>{x};
  x = for_head(std::move(x));
  at.stack->run_unread_top(x);
  const ModuleScope head(eager_.recorder, "head");
  Tensor scores = output_of(std::move(x)).scores;
  at.stack->forget();
  return {scores};
}

Tensor Composed::part_loss(const Tensor& output, const std::vector<Tensor>& targets) {
  const ModuleScope head(eager_.recorder, "head");
  return loss_of({output, {}}, targets);
}

// Behind the first block of a decoder, what it looks at goes on beside its own hidden states.
std::vector<Dims> Composed::carried_before(std::int64_t block) const {
  std::vector<Dims> carried;
  for (const Composition::Carried& one : composition_.carried_before(block, training_.tokens_of_rank()))
    carried.push_back({training_.micro_batch, one.tokens / split_.whole_length(1), one.width});
  return carried;
}

std::vector<Dims> Composed::part_input(std::size_t part) const { return carried_before(parts_[part].first); }
std::vector<Dims> Composed::part_output(std::size_t part) const { return carried_before(parts_[part].last); }

Tensor Composed::next_logits(const Tensor& tokens, const Tensor& positions) {
  const Stack& s = composition_.stack;
  if (composition_.encoder || !s.causal || s.head != HeadKind::language_model)
    return Family::next_logits(tokens, positions);
  generates_ = true;
  const Tensor x = run_stack(tokens, {}, positions);
  const ModuleScope head(eager_.recorder, "head");
  Tensor logits = logits_of(last_token(x));
  top().forget();
  return logits;
}

Tensor Composed::scores(const Batch& batch) {
  const Stack& s = composition_.stack;
  if (composition_.encoder || !s.causal || s.head != HeadKind::language_model) return Family::scores(batch);
  Tensor x = run_stack(batch.tokens, {});
  const ModuleScope head(eager_.recorder, "head");
  Tensor result = logits_of(x);
  top().forget();
  return result;
}

Tensor Composed::run_stack(const Tensor& input, const Tensor& encoded, const Tensor& positions) {
  if (!composition_.encoder) return top().run(input, encoded, positions);
  const ModuleScope module(eager_.recorder, "decoder");
  return top().run(input, encoded);
}

Tensor Composed::logits_of(const Tensor& x) {
  const Stack& s = composition_.stack;
  // What scores are made of besides one product is computed alike on every rank.
  const bool inside = s.head_transform || top().output_projection().weight != nullptr;
  Tensor h = x;
  if (s.head == HeadKind::language_model && !s.cross_attention && !s.plain) {  // hidden_states[:, slice_indices, :]
    eager_.recorder.host(HostClass::view);
    h = aten::view(eager_, x, x.sizes);
  }
  if (inside) h = split_.whole_sequence(h);
  if (s.head_transform) {
    h = linear(eager_, h, transform_);
    h = top().activated(h, s.activation);
    h = top().norm(h, transform_norm_);
  }
  if (top().output_projection().weight != nullptr && !s.head_transform)
    h = linear(eager_, h, top().output_projection());
  if (s.head_scale) h = scale(eager_, h);
  Tensor logits = split_.logits(split_.output_projection(h, head_, inside), s.vocabulary);
  if (s.logit_scale) logits = scale(eager_, logits);
  if (s.logit_offset) logits = add(eager_, logits, logit_offset_);
  if (s.logit_cap > 0.0) {
    eager_.recorder.host(HostClass::pointwise, 3);
    logits = aten::soft_cap(eager_, logits);
  }
  return logits;
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
  return s.causal && !composition_.encoder && s.head == HeadKind::sequence_classification &&
         s.pooler == PoolerKind::none;
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

Composed::Output Composed::class_scores(const Tensor& x) {
  const Stack& s = composition_.stack;
  if (scores_every_token()) {
    Tensor scores = linear(eager_, x, head_), last = last_scores(scores);
    return {std::move(last), std::move(scores)};
  }
  Output output;
  Tensor& pooled = output.pooled;
  pooled = s.head == HeadKind::token_classification ? x
           : s.pooler == PoolerKind::mean           ? mean_tokens(x)
           : s.pooler == PoolerKind::mean_patches   ? mean_tokens(aten::slice(eager_, x, 1, x.sizes[1] - 1))
           : s.pooler == PoolerKind::mean_norm
               ? top().norm(mean_tokens(aten::slice(eager_, x, 1, x.sizes[1] - 1)), pooler_norm_)
               : first_tokens(x);
  if (s.pooler == PoolerKind::class_and_mean) {
    const Tensor others = mean_tokens(aten::slice(eager_, x, 1, x.sizes[1] - 1 - (s.late_tokens ? s.extra_tokens : 0)));
    eager_.recorder.host(HostClass::concatenate);
    pooled = aten::join(eager_, {&pooled, &others});
  }
  if (pooler_.weight != nullptr) {
    if (s.pooler != PoolerKind::pretrained_tanh) pooled = dropout(eager_, pooled, s.dropout);
    pooled = pooled_by_dense(pooled);
    pooled = dropout(eager_, pooled, s.dropout);
  }
  output.scores = linear(eager_, pooled, head_);
  return output;
}

Tensor Composed::pooled_by_dense(const Tensor& first) {
  const Stack& s = composition_.stack;
  Tensor pooled = linear(eager_, first, pooler_);
  pooled = top().activated(pooled, s.pooler == PoolerKind::dense_activation ? s.activation : ComposedActivation::tanh);
  top().forget();
  return pooled;
}

}  // namespace ridgeline::families

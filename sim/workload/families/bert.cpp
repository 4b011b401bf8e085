#include "sim/workload/families/bert.h"

#include <array>

namespace ridgeline::families {

namespace aten = eager::aten;

constexpr bool kBias = true;                // these modules have no switch for it
constexpr std::int64_t kModulePython = 31;  // microseconds of a module's own Python around its operations

// Variables are declared so that they die in the order in which Python clears a function's: the C++ order is reversed.

Bert::Bert(Eager& eager, const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention)
    : Family(eager, model, training, attention) {
  const std::int64_t d = model.hidden, inner = share(model.feed_forward_width()), wide = share(d);
  {
    const ModuleScope module(eager.recorder, "embeddings");
    words_ = table(model.vocabulary);
    positions_ = table(model.max_positions);
    types_ = table(model.type_vocabulary);
    embedding_norm_ = norm_layer(kBias);
    position_ids_ = buffer({1, model.max_positions}, DType::int64);
    type_ids_ = buffer({1, model.max_positions}, DType::int64);
  }
  for (std::int16_t i = 0; i < model.layers; ++i) {
    eager.recorder.layer = i;
    const BlockScope scope(eager.recorder, i);
    Layer& weights = layers_.emplace_back();
    {
      const ModuleScope module(eager.recorder, "attention");
      weights.query = linear_layer(wide, d, kBias, LinearRole::query);
      weights.key = linear_layer(wide, d, kBias, LinearRole::key);
      weights.value = linear_layer(wide, d, kBias, LinearRole::value);
      weights.attention_dense = linear_layer(d, wide, kBias, LinearRole::output);
      weights.attention_norm = norm_layer(kBias);
    }
    const ModuleScope module(eager.recorder, "feed_forward");
    weights.up = linear_layer(inner, d, kBias, LinearRole::up);
    weights.down = linear_layer(d, inner, kBias, LinearRole::down);
    weights.norm = norm_layer(kBias);
  }
  eager.recorder.layer = -1;
  const ModuleScope head(eager.recorder, "head");
  if (has_pooler()) pooler_ = linear_layer(d, d, kBias);
  if (model.head == ModelHead::masked_lm || model.head == ModelHead::pretraining) {
    decoder_.bias = unallocated_parameter();  // a parameter of the outer module: first in order, last on the device
    transform_ = linear_layer(d, d, kBias);
    transform_norm_ = norm_layer(kBias);
    decoder_.weight = model.tie_embeddings ? words_.weight : parameter({model.vocabulary, d});
    allocate(*decoder_.bias, {model.vocabulary}, type());
  }
  trains_head_ = model.head == ModelHead::sequence_classification || model.head == ModelHead::question_answering;
  if (model.head == ModelHead::sequence_classification) classifier_ = linear_layer(model.labels, d, true);
  if (model.head == ModelHead::question_answering || model.head == ModelHead::pretraining)
    classifier_ = linear_layer(2, d, true);
}

Tensor Bert::loss(const Batch& batch) {
  Tensor relation, logits;  // handed to the caller with the loss: they outlive everything else
  Tensor pooled;
  const Tensor sequence = encode(batch.tokens, pooled);
  const ModuleScope head(eager_.recorder, "head");
  const auto flat = [&](const Tensor& target) { return view(eager_, target, {target.elements()}); };
  switch (model_.head) {
    case ModelHead::question_answering: return span_loss(sequence, batch);
    case ModelHead::pretraining: {
      logits = token_logits(sequence);
      relation = linear(eager_, pooled, classifier_);
      Tensor relation_loss, language_loss;
      const ModuleScope loss(eager_.recorder, "loss");
      language_loss = cross_entropy(eager_, rows_of(logits), flat(batch.targets[0]));
      relation_loss = cross_entropy(eager_, view(eager_, relation, relation.sizes), flat(batch.targets[1]));
      return add(eager_, language_loss, relation_loss);
    }
    case ModelHead::sequence_classification: {
      pooled = dropout(eager_, pooled, model_.dropout);
      logits = linear(eager_, pooled, classifier_);
      const ModuleScope loss(eager_.recorder, "loss");
      return cross_entropy(eager_, view(eager_, logits, logits.sizes), flat(batch.targets[0]));
    }
    case ModelHead::masked_lm:
    case ModelHead::language_model: break;
  }
  logits = token_logits(sequence);
  const ModuleScope loss(eager_.recorder, "loss");
  return cross_entropy(eager_, rows_of(logits), flat(batch.targets[0]));
}

Tensor Bert::encode(const Tensor& tokens, Tensor& pooled) {
  Tensor mask;
  if (model_.adds_mask.value_or(training_.mask_always_added) && attention_ == AttentionChoice::eager)
    mask = mask_of_ones(tokens);
  if (training_.mask_given && attention_ != AttentionChoice::eager && attention_ != AttentionChoice::math) {
    const std::int64_t length = place.length;
    mask = eager_.empty({training_.micro_batch, 1, length, length},
                        eager_.autocast.on() ? eager_.autocast.type() : type());
    aten::pointwise(eager_, PointwiseFunction::other, {}, mask);
  }
  const Tensor embedded = embeddings(tokens);
  Tensor x = model_.sequence_first ? contiguous(eager_, transpose(eager_, embedded, 0, 1)) : embedded;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    eager_.recorder.layer = static_cast<std::int16_t>(i);
    const BlockScope scope(eager_.recorder, static_cast<std::int64_t>(i));
    const auto run = [this, i, mask](Eager& eager, Tensor input) {
      eager.recorder.layer = static_cast<std::int16_t>(i);
      return layer(layers_[i], std::move(input), mask);
    };
    x = run_block(run, x);
  }
  eager_.recorder.layer = -1;
  if (model_.sequence_first) x = contiguous(eager_, transpose(eager_, x, 0, 1));
  if (has_pooler()) {
    const ModuleScope head(eager_.recorder, "head");
    eager_.recorder.host(HostClass::view);
    const Tensor first = aten::select_first(eager_, x);
    pooled = linear(eager_, first, pooler_);
    pooled = activate(eager_, pooled, aten::ActivationKind::tanh);
  }
  return x;
}

Tensor Bert::embeddings(const Tensor& tokens) {
  const ModuleScope module(eager_.recorder, "embeddings");
  const std::int64_t length = place.length;
  Tensor position_ids = position_ids_;
  position_ids.sizes[1] = length;
  // Token types default to a gathered buffer of zeros, repeated for every sequence.
  eager_.recorder.host(HostClass::pointwise);
  Tensor types = eager_.empty({1, length}, DType::int64);
  Tensor type_ids = type_ids_;
  type_ids.sizes[1] = length;
  aten::pointwise(eager_, PointwiseFunction::other, {&type_ids}, types);
  types = aten::expand(eager_, types, tokens.sizes);

  Tensor position_rows, x;
  Tensor type_rows, word_rows;
  word_rows = embedding(eager_, tokens, words_);
  type_rows = embedding(eager_, types, types_);
  x = add(eager_, word_rows, type_rows);
  position_rows = embedding(eager_, position_ids, positions_);
  x = add(eager_, x, position_rows);
  x = layer_norm(eager_, x, embedding_norm_, true);
  x = dropout(eager_, x, model_.dropout);
  Tensor result = std::move(x);
  word_rows = Tensor{};
  type_rows = Tensor{};
  return result;
}

Tensor Bert::layer(const Layer& weights, Tensor x, const Tensor& mask) {
  // What eager attention returns beside its result is a variable of the layer and lives to its end.
  SelfAttention attended;
  Tensor attention_output;
  {
    const ModuleScope module(eager_.recorder, "attention");
    attended = self_attention(weights, enter_split(x), mask);
    attention_output = output(attended.context, x, weights.attention_dense, weights.attention_norm);
    attended.context = Tensor{};
  }
  const ModuleScope module(eager_.recorder, "feed_forward");
  Tensor inner = feed_forward_input(enter_split(attention_output), weights.up);
  inner = activate(eager_, inner, activation_kind());
  Tensor result = output(inner, attention_output, weights.down, weights.norm);
  inner = Tensor{};
  attended.probabilities = Tensor{};
  return result;
}

Tensor Bert::feed_forward_input(const Tensor& x, const Affine& up) {
  if (!model_.activation_adds_bias) return linear(eager_, x, up);
  const Tensor product = linear(eager_, x, {up.weight, nullptr});
  return add(eager_, up.bias->value, product);
}

Bert::SelfAttention Bert::self_attention(const Layer& weights, const Tensor& x, const Tensor& mask) {
  if (model_.sequence_first) return sequence_first_attention(weights, x, mask);
  const std::int64_t batch = x.sizes[0], length = x.sizes[1];
  const auto heads = [&](const Affine& projection) {
    return transpose(
        eager_, view(eager_, linear(eager_, x, projection), {batch, length, share(model_.heads), model_.head_dim()}), 1,
        2);
  };
  SelfAttention result;
  Tensor v, k, q;
  q = heads(weights.query);
  k = heads(weights.key);
  v = heads(weights.value);
  eager_.recorder.host(HostClass::python_fixed, kModulePython);
  if (attention_ != AttentionChoice::eager) {
    const Tensor y = fused_attention(q, k, v, false, mask);
    result.context = contiguous(eager_, transpose(eager_, y, 1, 2));
  } else {
    Tensor scores = matmul(eager_, q, transpose(eager_, k, 2, 3));
    result.probabilities = probabilities_of(scores, mask);
    const Tensor y = matmul(eager_, result.probabilities, v);
    result.context = contiguous(eager_, transpose(eager_, y, 1, 2));
  }
  result.context = view(eager_, result.context, {batch, length, share(model_.hidden)});
  return result;
}

// Heads of all sequences are one dimension right away, and [tokens, heads, width] is a batch of matrices as it lies.
Bert::SelfAttention Bert::sequence_first_attention(const Layer& weights, const Tensor& x, const Tensor& mask) {
  const std::int64_t length = x.sizes[0], batch = x.sizes[1], heads_here = share(model_.heads),
                     matrices = batch * heads_here;
  const auto heads = [&](const Affine& projection) {
    return transpose(eager_, view(eager_, linear(eager_, x, projection), {length, matrices, model_.head_dim()}), 0, 1);
  };
  SelfAttention result;
  Tensor v, k, q;
  q = heads(weights.query);
  k = heads(weights.key);
  v = heads(weights.value);
  eager_.recorder.host(HostClass::python_fixed, kModulePython);
  Tensor scores = view(eager_, matmul(eager_, q, transpose(eager_, k, 1, 2)), {batch, heads_here, length, length});
  result.probabilities = view(eager_, probabilities_of(scores, mask), {matrices, length, length});
  const Tensor y = matmul(eager_, result.probabilities, v);
  result.context = view(eager_, contiguous(eager_, transpose(eager_, y, 0, 1)), {length, batch, share(model_.hidden)});
  return result;
}

Tensor Bert::probabilities_of(Tensor& scores, const Tensor& mask) {
  scores = scale(eager_, scores);
  // Models that always add a mask keep their scores in a variable to the end of the function.
  if (mask.defined()) scores = add(eager_, scores, mask);
  const Tensor probabilities = softmax(eager_, scores);
  if (!mask.defined()) scores = Tensor{};
  return dropout(eager_, probabilities, model_.attention_dropout);
}

Tensor Bert::mask_of_ones(const Tensor& tokens) {
  eager_.recorder.host(HostClass::pointwise, 3);
  const Tensor ones = aten::full(eager_, {tokens.sizes[0], 1, 1, tokens.sizes[1]}, type());
  const Tensor hidden = aten::add_number(eager_, ones);
  return aten::scale(eager_, hidden);
}

Tensor Bert::output(const Tensor& x, const Tensor& residual, const Affine& dense, const Affine& norm) {
  Tensor h = row_linear(x, dense);
  h = dropout(eager_, h, model_.dropout);
  const Tensor sum = add(eager_, h, residual);
  return layer_norm(eager_, sum, norm, true);
}

Tensor Bert::token_logits(const Tensor& sequence) {
  Tensor h = linear(eager_, sequence, transform_);
  h = activate(eager_, h, activation_kind());
  h = layer_norm(eager_, h, transform_norm_, true);
  return linear(eager_, h, decoder_);
}

Tensor Bert::rows_of(const Tensor& logits) {
  return view(eager_, logits, {logits.elements() / model_.vocabulary, model_.vocabulary});
}

Tensor Bert::span_loss(const Tensor& sequence, const Batch& batch) {
  std::array<Tensor, 2> ends, losses, places;  // start and end: scores of every token, loss, clamped position
  Tensor total;
  {
    const Tensor logits = linear(eager_, sequence, classifier_);
    const std::int64_t rows = logits.sizes[0], length = logits.sizes[1];
    eager_.recorder.host(HostClass::split);
    const auto parts = aten::split_last<2>(eager_, logits);
    for (std::size_t i = 0; i < 2; ++i) ends[i] = contiguous(eager_, view(eager_, parts[i], {rows, length}));
    for (std::size_t i = 0; i < 2; ++i) {
      eager_.recorder.host(HostClass::pointwise);
      places[i] = aten::clamp(eager_, batch.targets[i]);
    }
    for (std::size_t i = 0; i < 2; ++i) losses[i] = cross_entropy(eager_, ends[i], places[i]);
    const Tensor sum = add(eager_, losses[0], losses[1]);
    eager_.recorder.host(HostClass::loss_division);
    total = aten::divide(eager_, sum);
  }
  for (auto* pair : {&losses, &ends})
    for (Tensor& variable : *pair) variable = Tensor{};
  return total;
}

}  // namespace ridgeline::families

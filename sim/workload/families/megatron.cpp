#include "sim/workload/families/megatron.h"

#include <algorithm>

namespace ridgeline::families {

namespace aten = eager::aten;

std::int64_t padded_vocabulary(std::int64_t vocabulary, std::int64_t ranks, std::int64_t rows) {
  const std::int64_t multiple = rows * ranks;
  return (vocabulary + multiple - 1) / multiple * multiple;
}

Megatron::Megatron(Eager& eager, const ModelDescription& model, const TrainingDescription& training,
                   AttentionChoice attention)
    : Family(eager, model, training, attention),
      vocabulary_(
          share(padded_vocabulary(model.vocabulary, training.parallel.tensor, training.parallel.vocabulary_multiple))),
      key_heads_(std::max<std::int64_t>(1, share(model.key_value_count()))) {
  split_ = {tensor_ ? &*tensor_ : nullptr, training.parallel.sequence_parallel, training.parallel.async_all_reduce,
            training.parallel.fp16_cross_entropy,
            training.parallel.gradient_accumulation_fusion ? &stand_ins_ : nullptr};
  blocks_.resize(static_cast<std::size_t>(model.layers));
  for (const StagePart& part : parts_) {
    if (part.embedding) make_embedding();
    for (std::int64_t i = part.first; i < part.last; ++i) {
      eager.recorder.layer = static_cast<std::int16_t>(i);
      const BlockScope scope(eager.recorder, i);
      blocks_[static_cast<std::size_t>(i)] = make_block();
    }
    eager.recorder.layer = -1;
    if (part.head) make_head();
    part_ends.push_back(parameters.size());
  }
}

void Megatron::make_embedding() {
  const ModuleScope module(eager_.recorder, "embeddings");
  tokens_ = table(vocabulary_);
  if (!rotary()) positions_ = table(model_.max_positions);
  if (!causal()) types_ = table(model_.type_vocabulary);
}

Megatron::Block Megatron::make_block() {
  const std::int64_t d = model_.hidden, wide = share(model_.attention_width()),
                     inner = share(model_.feed_forward_width()) * (gated() ? 2 : 1);
  const bool attention_bias = rotary() ? model_.attention_bias.value_or(model_.bias) : model_.bias,
             feed_forward_bias = rotary() ? model_.feed_forward_bias.value_or(model_.bias) : model_.bias;
  Block weights;
  weights.input_norm = megatron_norm();
  {
    const ModuleScope module(eager_.recorder, "attention");
    weights.mixed = linear_layer(wide + 2 * key_heads_ * model_.head_dim(), d, attention_bias);
    weights.dense = linear_layer(d, wide, attention_bias);
  }
  weights.middle_norm = megatron_norm();
  const ModuleScope module(eager_.recorder, "feed_forward");
  weights.up = linear_layer(inner, d, feed_forward_bias);
  weights.down = linear_layer(d, share(model_.feed_forward_width()), feed_forward_bias);
  return weights;
}

void Megatron::make_head() {
  const std::int64_t d = model_.hidden;
  const ModuleScope head(eager_.recorder, "head");
  final_norm_ = megatron_norm();
  if (!causal()) {
    bert_.transform = linear_layer(d, d, true);
    bert_.norm = norm_layer(true);
    bert_.bias = parameter({vocabulary_});
    if (model_.head == ModelHead::pretraining) {
      bert_.pooler = linear_layer(d, d, true);
      bert_.relation = linear_layer(2, d, true);
    }
  }
  // The last stage of a pipeline has a copy of a table that is tied.
  head_ = model_.tie_embeddings && tokens_.weight != nullptr ? tokens_ : linear_layer(vocabulary_, d, false);
}

Tensor Megatron::norm(const Tensor& x, const Affine& weights) {
  return rotary() ? megatron::rms_norm(eager_, x, *weights.weight) : layer_norm(eager_, x, weights, true);
}

std::int64_t Megatron::shared_table() const {
  if (!training_.parallel.pipelined() || !model_.tie_embeddings) return 0;
  const Parameter* table = tokens_.weight != nullptr ? tokens_.weight : head_.weight;
  return table != nullptr ? table->value.elements() : 0;
}

void Megatron::take_batch(const Batch& batch) {
  eager_.recorder.host(HostClass::pointwise, 8);
  const Tensor sizes = aten::full(eager_, {10}, DType::int64);
  Tensor data = eager_.empty({batch.tokens.sizes[0], batch.tokens.sizes[1] + 1}, DType::int64);
  if (tensor_) {
    parallel::ProcessGroup& group = tensor_->group();
    group.run(CollectiveKind::broadcast, sizes.type, sizes.bytes(), sizes, sizes);
  }
  eager_.recorder.op(Copy{CopyKind::device_to_host, DType::int64, 1, 10, 1}, {&sizes}, {});
  eager_.recorder.wait_for_gpu();
  eager_.recorder.op(Copy{CopyKind::host_to_device, DType::int64, 1, data.elements(), 1}, {&data}, {&data});
  if (tensor_) tensor_->group().run(CollectiveKind::broadcast, data.type, data.bytes(), data, data);
  // Tokens and labels, the mask, the mask of losses, positions.
  eager_.recorder.host(HostClass::pointwise, 6);
  for (int i = 0; i < 2; ++i)
    eager_.recorder.op(Copy{CopyKind::permute, DType::int64, batch.tokens.sizes[0], batch.tokens.sizes[1], 1}, {&data},
                       {&batch.tokens});
  if (causal() && attention_ == AttentionChoice::eager) {
    const std::int64_t length = place.length;
    Tensor mask = aten::full(eager_, {1, 1, length, length}, DType::fp32);
    aten::pointwise(eager_, PointwiseFunction::other, {&mask}, mask);
    const Tensor hides = eager_.empty(mask.sizes, DType::boolean);
    aten::pointwise(eager_, PointwiseFunction::equal, {&mask}, hides);
  }
}

Tensor Megatron::loss(const Batch& batch) {
  take_batch(batch);
  Tensor x = run_blocks(parts_.front(), embed(batch.tokens));
  const ModuleScope head(eager_.recorder, "head");
  Tensor hidden = norm(x, final_norm_);
  x = Tensor{};
  if (!causal()) return bert_loss(hidden, batch);
  const Tensor logits = megatron::column_linear(eager_, split_, hidden, *head_.weight, nullptr);
  hidden = Tensor{};
  return token_loss(logits, batch.targets[0]);
}

Tensor Megatron::token_loss(const Tensor& logits, const Tensor& targets) {
  return training_.parallel.cross_entropy_fusion ? megatron::fused_cross_entropy(eager_, split_, logits, targets)
                                                 : megatron::vocabulary_cross_entropy(eager_, split_, logits, targets);
}

Tensor Megatron::run_blocks(const StagePart& held, Tensor x) {
  const ParallelDescription& how = training_.parallel;
  const bool recomputes = how.last_stage_recomputes || !how.pipelined() || !held.head;
  for (std::int64_t i = held.first; i < held.last; ++i) {
    eager_.recorder.layer = static_cast<std::int16_t>(i);
    const BlockScope scope(eager_.recorder, i);
    const auto run = [this, i](Eager& eager, Tensor input) {
      eager.recorder.layer = static_cast<std::int16_t>(i);
      return block(blocks_[static_cast<std::size_t>(i)], std::move(input));
    };
    x = recomputes ? run_block(run, x) : run(eager_, x);
  }
  eager_.recorder.layer = -1;
  return x;
}

std::vector<Tensor> Megatron::run_part(std::size_t part, const Batch& batch, std::vector<Tensor> received) {
  const StagePart& held = parts_[part];
  Tensor x = held.embedding ? embed(batch.tokens) : received.front();
  received.clear();
  x = run_blocks(held, std::move(x));
  if (!held.head) return {x};
  const ModuleScope head(eager_.recorder, "head");
  const Tensor hidden = norm(x, final_norm_);
  x = Tensor{};
  return {megatron::column_linear(eager_, split_, hidden, *head_.weight, nullptr)};
}

Tensor Megatron::part_loss(const Tensor& logits, const std::vector<Tensor>& targets) {
  const ModuleScope head(eager_.recorder, "head");
  return token_loss(logits, targets.front());
}

Tensor Megatron::embed(const Tensor& tokens) {
  const ModuleScope module(eager_.recorder, "embeddings");
  Tensor x = megatron::vocabulary_embedding(eager_, split_, tokens, *tokens_.weight);
  if (!rotary()) {
    const Tensor index = aten::arange(eager_, place.length, DType::int64);
    Tensor every = eager_.empty(tokens.sizes, DType::int64);
    aten::pointwise(eager_, PointwiseFunction::other, {&index}, every);
    x = add(eager_, x, embedding(eager_, every, positions_));
    if (!causal()) x = add(eager_, x, embedding(eager_, every, types_));
  }
  x = contiguous(eager_, transpose(eager_, x, 0, 1));
  if (split_.several() && split_.sequence) x = megatron::scatter_sequence(eager_, split_, x);
  return dropout(eager_, x, model_.dropout);
}

Tensor Megatron::block(const Block& weights, Tensor x) {
  const auto bias_of = [](const Affine& layer) { return layer.bias != nullptr ? layer.bias->value : Tensor{}; };
  {
    const Tensor normed = norm(x, weights.input_norm);
    const Tensor attended = attention_of(weights, normed);
    x = megatron::bias_dropout_add(eager_, attended, bias_of(weights.dense), x, model_.dropout);
  }
  Tensor branch;
  const ModuleScope module(eager_.recorder, "feed_forward");
  {
    const Tensor normed = norm(x, weights.middle_norm);
    // The bias is added in the kernel of the activation, where that is GELU.
    const bool fused = !gated() && weights.up.bias != nullptr;
    branch = megatron::column_linear(eager_, split_, normed, *weights.up.weight, fused ? nullptr : weights.up.bias);
    branch = gated() ? megatron::swiglu(eager_, branch)
             : fused ? megatron::bias_gelu(eager_, branch, weights.up.bias->value)
                     : activate(eager_, branch, activation_kind());
  }
  branch = megatron::row_linear(eager_, split_, branch, *weights.down.weight);
  return megatron::bias_dropout_add(eager_, branch, bias_of(weights.down), x, model_.dropout);
}

Tensor Megatron::attention_of(const Block& weights, const Tensor& x) {
  const ModuleScope module(eager_.recorder, "attention");
  Tensor q, k, v;
  {
    const Tensor mixed = megatron::column_linear(eager_, split_, x, *weights.mixed.weight, weights.mixed.bias);
    auto parts = megatron::split_heads(eager_, mixed, share(model_.heads), key_heads_, model_.head_dim());
    q = std::move(parts[0]);
    k = std::move(parts[1]);
    v = std::move(parts[2]);
  }
  if (rotary()) {
    q = megatron::rotate(eager_, q);
    k = megatron::rotate(eager_, k);
  }
  Tensor context;
  if (attention_ != AttentionChoice::eager) {
    context = fused_core(q, k, v);
  } else if (training_.activation_checkpointing == ActivationCheckpointing::selective) {
    const auto core = [this, k, v](Eager&, const Tensor& queries) { return core_attention(queries, k, v); };
    context = eager::checkpoint(eager_, core, q);
  } else {
    context = core_attention(q, k, v);
  }
  for (Tensor* part : {&q, &k, &v}) *part = Tensor{};
  return megatron::row_linear(eager_, split_, context, *weights.dense.weight);
}

Tensor Megatron::for_each_head(const Tensor& x) {
  const std::int64_t times = share(model_.heads) / key_heads_;
  if (times == 1) return x;
  // As in grouped keys written out: [.., groups, width] → [.., groups · times, width].
  const Tensor heads_first = transpose(eager_, transpose(eager_, x, 1, 2), 0, 1);  // [groups, length, batch, width]
  eager_.recorder.host(HostClass::pointwise);
  const Tensor wide = aten::expand(eager_, aten::unsqueeze(eager_, heads_first, 1),
                                   {x.sizes[2], times, x.sizes[0], x.sizes[1], x.sizes[3]});
  const Tensor copied = aten::reshape(eager_, wide, {x.sizes[2] * times, x.sizes[0], x.sizes[1], x.sizes[3]});
  return contiguous(eager_, transpose(eager_, transpose(eager_, copied, 0, 1), 1, 2));
}

Tensor Megatron::core_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  const std::int64_t length = q.sizes[0], batch = q.sizes[1], heads = q.sizes[2], width = q.sizes[3],
                     matrices = batch * heads;
  const auto flat = [&](const Tensor& x) {
    return transpose(eager_, view(eager_, for_each_head(x), {length, matrices, width}), 0, 1);
  };
  Tensor probabilities;
  {
    const Tensor queries = flat(q), keys = transpose(eager_, flat(k), 1, 2);
    // TransformerEngine's is gone with the product; Megatron-LM's own layers share one.
    Tensor unread;
    if (training_.parallel.transformer_engine) unread = eager_.empty({matrices, length, length}, q.type);
    else if (!score_buffer_.defined()) {
      score_buffer_ = eager_.empty({matrices, length, length}, q.type);
      eager_.recorder.set_category(score_buffer_.storage.id(), Category::workspaces);
    }
    eager_.recorder.host(HostClass::matmul);
    const Tensor scores = aten::bmm(eager_, queries, keys);
    probabilities = probabilities_of(view(eager_, scores, {batch, heads, length, length}));
  }
  // The rank's own random numbers: the generator's state is read and set twice, taken to cost what dropout's call does.
  eager_.recorder.host(HostClass::dropout);
  probabilities = dropout(eager_, probabilities, model_.attention_dropout);
  probabilities = view(eager_, probabilities, {matrices, length, length});
  eager_.recorder.host(HostClass::matmul);
  Tensor context = aten::bmm(eager_, probabilities, flat(v));
  probabilities = Tensor{};
  context = view(eager_, context, {batch, heads, length, width});
  context = contiguous(eager_, transpose(eager_, transpose(eager_, context, 0, 2), 1, 2));
  return view(eager_, context, {length, batch, heads * width});
}

Tensor Megatron::probabilities_of(const Tensor& scores) {
  if (megatron::fused_softmax_takes(scores)) return megatron::scale_mask_softmax(eager_, scores, causal());
  if (!hidden_scores_.defined())
    hidden_scores_ = eager_.empty({1, 1, scores.sizes[2], scores.sizes[3]}, DType::boolean);
  return megatron::separate_softmax(eager_, scores, hidden_scores_);
}

Tensor Megatron::fused_core(const Tensor& q, const Tensor& k, const Tensor& v) {
  const std::int64_t length = q.sizes[0], batch = q.sizes[1], heads = q.sizes[2], width = q.sizes[3];
  const auto by_sequence = [&](const Tensor& x) {
    return transpose(eager_, contiguous(eager_, transpose(eager_, x, 0, 1)), 1, 2);  // [batch, heads, length, width]
  };
  const Tensor queries = by_sequence(q), keys = by_sequence(k), values = by_sequence(v);
  Tensor y = attention(eager_, attention_, queries, keys, values, causal(), model_.attention_dropout);
  y = contiguous(eager_, transpose(eager_, transpose(eager_, y, 1, 2), 0, 1));
  return view(eager_, y, {length, batch, heads * width});
}

Tensor Megatron::bert_loss(const Tensor& hidden, const Batch& batch) {
  Tensor h = linear(eager_, hidden, bert_.transform);
  h = activate(eager_, h, aten::ActivationKind::gelu);
  h = layer_norm(eager_, h, bert_.norm, true);
  const Tensor logits = megatron::column_linear(eager_, split_, h, *head_.weight, bert_.bias);
  Tensor result = token_loss(logits, batch.targets[0]);
  if (model_.head != ModelHead::pretraining) return result;
  const Tensor first = aten::select_first(eager_, transpose(eager_, hidden, 0, 1));
  const Tensor pooled = activate(eager_, linear(eager_, first, bert_.pooler), aten::ActivationKind::tanh);
  const Tensor relation = aten::to(eager_, linear(eager_, pooled, bert_.relation), DType::fp32);
  return add(eager_, result, cross_entropy(eager_, relation, view(eager_, batch.targets[1], {place.rows})));
}

}  // namespace ridgeline::families

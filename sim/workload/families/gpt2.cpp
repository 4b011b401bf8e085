#include "sim/workload/families/gpt2.h"

namespace ridgeline::families {

// Variables are declared so that they die in the order in which Python clears a function's: the C++ order is reversed.

Gpt2::Gpt2(Eager& eager, const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention)
    : Family(eager, model, training, attention) {
  const std::int64_t d = model.hidden, inner = share(model.feed_forward_width()), wide = share(d);
  blocks_.resize(static_cast<std::size_t>(model.layers));
  for (const StagePart& part : parts_) {
    if (part.embedding) {
      const ModuleScope embeddings(eager.recorder, "embeddings");
      tokens_ = table(model.vocabulary);
      positions_ = table(model.max_positions);
    }
    for (std::int64_t i = part.first; i < part.last; ++i) {
      eager.recorder.layer = static_cast<std::int16_t>(i);
      const BlockScope scope(eager.recorder, i);
      Block& layer = blocks_[static_cast<std::size_t>(i)];
      layer.norm_before_attention = norm_layer(model.bias);
      {
        const ModuleScope module(eager.recorder, "attention");
        layer.qkv = linear_layer(3 * wide, d, model.bias, LinearRole::qkv);
        layer.projection = linear_layer(d, wide, model.bias, LinearRole::output);
        if (attention == AttentionChoice::eager)
          layer.mask = buffer({1, 1, model.max_positions, model.max_positions}, type());
      }
      layer.norm_before_feed_forward = norm_layer(model.bias);
      const ModuleScope module(eager.recorder, "feed_forward");
      layer.up = linear_layer(inner, d, model.bias, LinearRole::up);
      layer.down = linear_layer(d, inner, model.bias, LinearRole::down);
    }
    eager.recorder.layer = -1;
    if (part.head) {
      {
        const ModuleScope module(eager.recorder, "final_norm");
        final_norm_ = norm_layer(model.bias);
      }
      const ModuleScope head(eager.recorder, "head");
      const bool tied = model.tie_embeddings && part.embedding;
      head_ = tied ? tokens_ : linear_layer(model.vocabulary, d, false);
    }
    part_ends.push_back(parameters.size());
  }
}

Tensor Gpt2::run_part(std::size_t part, Tensor input) {
  const StagePart& held = parts_[part];
  Embedded embedded;
  Tensor x = held.embedding ? embed(input, embedded) : input;
  input = Tensor{};
  x = run_blocks(held, std::move(x));
  if (!held.head) return x;
  const Tensor normed = final_norm_of(x);
  const ModuleScope head(eager_.recorder, "head");
  return linear(eager_, normed, head_);
}

Tensor Gpt2::loss(const Batch& batch) {
  const Tensor x = encode(batch.tokens);
  Tensor normed = final_norm_of(x);
  const ModuleScope head(eager_.recorder, "head");
  const Tensor logits = linear(eager_, normed, head_);
  normed = Tensor{};
  const ModuleScope loss(eager_.recorder, "loss");
  return cross_entropy(eager_, view(eager_, logits, {logits.elements() / model_.vocabulary, model_.vocabulary}),
                       view(eager_, batch.targets[0], {batch.targets[0].elements()}));
}

Tensor Gpt2::next_logits(const Tensor& tokens, const Tensor&) {
  const Tensor x = encode(tokens);
  const Tensor normed = final_norm_of(x);
  const ModuleScope head(eager_.recorder, "head");
  return linear(eager_, last_token(normed), head_);
}

Tensor Gpt2::final_norm_of(const Tensor& x) {
  const ModuleScope module(eager_.recorder, "final_norm");
  return layer_norm(eager_, x, final_norm_);
}

Tensor Gpt2::encode(const Tensor& tokens) {
  Embedded embedded;
  return run_blocks(parts_.front(), embed(tokens, embedded));
}

Tensor Gpt2::embed(const Tensor& tokens, Embedded& rows) {
  namespace aten = eager::aten;
  const bool with_cache = store != nullptr;
  const ModuleScope embeddings(eager_.recorder, "embeddings");
  rows.tokens = embedding(eager_, tokens, tokens_);
  Tensor index = with_cache ? eager_.empty(tokens.sizes, DType::int64)  // positions of every sequence
                            : aten::arange(eager_, place.length, DType::int64);
  rows.positions = embedding(eager_, index, positions_);
  index = Tensor{};
  Tensor sum = add(eager_, rows.tokens, rows.positions);
  if (!with_cache) {
    rows.tokens = Tensor{};
    rows.positions = Tensor{};
  }
  return dropout(eager_, sum, model_.dropout);
}

Tensor Gpt2::run_blocks(const StagePart& part, Tensor x) {
  for (std::int64_t i = part.first; i < part.last; ++i) {
    eager_.recorder.layer = static_cast<std::int16_t>(i);
    const BlockScope scope(eager_.recorder, static_cast<std::int64_t>(i));
    const auto run = [this, i](Eager& eager, Tensor input) {
      eager.recorder.layer = static_cast<std::int16_t>(i);
      return block(blocks_[static_cast<std::size_t>(i)], std::move(input));
    };
    x = run_block(run, x);
  }
  eager_.recorder.layer = -1;
  return x;
}

Tensor Gpt2::block(const Block& layer, Tensor x) {
  Tensor attended;
  {
    Tensor normed = layer_norm(eager_, x, layer.norm_before_attention);
    normed = enter_split(normed);
    Tensor branch = self_attention(layer, normed);
    normed = Tensor{};
    Tensor sum = add(eager_, x, branch);
    if (store != nullptr) attended = std::move(branch);
    branch = Tensor{};
    x = std::move(sum);
  }
  Tensor normed = layer_norm(eager_, x, layer.norm_before_feed_forward);
  normed = enter_split(normed);
  const ModuleScope feed_forward(eager_.recorder, "feed_forward");
  Tensor branch = linear(eager_, normed, layer.up);
  if (store == nullptr) normed = Tensor{};
  branch = activate(eager_, branch, activation_kind());
  branch = row_linear(branch, layer.down);
  branch = dropout(eager_, branch, model_.dropout);
  return add(eager_, x, branch);
}

Tensor Gpt2::self_attention(const Block& layer, const Tensor& x) {
  namespace aten = eager::aten;
  const ModuleScope module(eager_.recorder, "attention");
  const std::int64_t batch = x.sizes[0], length = x.sizes[1], wide = share(x.sizes[2]);
  Tensor scores, y, v, k, q;
  {
    const Tensor qkv = linear(eager_, x, layer.qkv);
    eager_.recorder.host(HostClass::split);
    auto parts = aten::split_last<3>(eager_, qkv);
    Tensor* heads[] = {&q, &k, &v};
    for (std::size_t i = 0; i < 3; ++i)
      *heads[i] =
          transpose(eager_, view(eager_, parts[i], {batch, length, share(model_.heads), model_.head_dim()}), 1, 2);
  }
  remember(k, v);
  // A single new token may look at all others.
  const bool causal = length > 1;
  if (attention_ != AttentionChoice::eager) {
    y = fused_attention(q, k, v, causal);
  } else {
    scores = scale(eager_, matmul(eager_, q, transpose(eager_, k, 2, 3)));
    {
      eager_.recorder.host(HostClass::pointwise);
      Tensor visible = layer.mask;  // the corner of the mask for this length
      visible.sizes[2] = length;
      visible.sizes[3] = visible_keys();
      const Tensor hidden_places = aten::equal_number(eager_, visible);
      scores = masked_fill(eager_, scores, hidden_places);
    }
    Tensor probabilities = softmax(eager_, scores);
    probabilities = dropout(eager_, probabilities, model_.attention_dropout);
    y = matmul(eager_, probabilities, v);
  }
  Tensor out = transpose(eager_, y, 1, 2);
  out = contiguous(eager_, out);
  out = view(eager_, out, {batch, length, wide});
  out = row_linear(out, layer.projection);
  return dropout(eager_, out, model_.dropout);
}

}  // namespace ridgeline::families

#include "sim/workload/families/llama.h"

#include "sim/workload/families/chunked_loss.h"

#include "sim/workload/families/megatron_functions.h"

namespace ridgeline::families {

namespace aten = eager::aten;

Llama::Llama(Eager& eager, const ModelDescription& model, const TrainingDescription& training,
             AttentionChoice attention)
    : Family(eager, model, training, attention) {
  const std::int64_t d = model.hidden, inner = share(model.feed_forward_width()),
                     shared = share(model.key_value_count()) * model.head_dim(), wide = share(model.attention_width());
  const bool attention_bias = model.attention_bias.value_or(model.bias),
             feed_forward_bias = model.feed_forward_bias.value_or(model.bias);
  const std::int64_t rows = split_.vocabulary(model.vocabulary);
  layers_.resize(static_cast<std::size_t>(model.layers));
  for (const StagePart& part : parts_) {
    if (part.embedding) {
      const ModuleScope module(eager.recorder, "embeddings");
      tokens_ = table(rows);
    }
    for (std::int64_t i = part.first; i < part.last; ++i) {
      eager.recorder.layer = static_cast<std::int16_t>(i);
      const BlockScope scope(eager.recorder, i);
      Layer& weights = layers_[static_cast<std::size_t>(i)];
      weights.input_norm = norm_layer(false);
      {
        const ModuleScope module(eager.recorder, "attention");
        weights.query = linear_layer(wide, d, attention_bias, LinearRole::query);
        weights.key = linear_layer(shared, d, attention_bias, LinearRole::key);
        weights.value = linear_layer(shared, d, attention_bias, LinearRole::value);
        weights.projection = linear_layer(d, wide, attention_bias, LinearRole::output);
      }
      weights.attention_norm = norm_layer(false);
      {
        const ModuleScope module(eager.recorder, "feed_forward");
        weights.gate = linear_layer(inner, d, feed_forward_bias, LinearRole::gate);
        weights.up = linear_layer(inner, d, feed_forward_bias, LinearRole::up);
        weights.down = linear_layer(d, inner, feed_forward_bias, LinearRole::down);
      }
    }
    eager.recorder.layer = -1;
    if (part.head) {
      {
        const ModuleScope module(eager.recorder, "final_norm");
        final_norm_ = norm_layer(false);
      }
      const ModuleScope head(eager.recorder, "head");
      const bool tied = model.tie_embeddings && part.embedding;
      head_ = tied ? tokens_ : linear_layer(rows, d, false);
    }
    part_ends.push_back(parameters.size());
  }
}

Tensor Llama::run_part(std::size_t part, Tensor input) {
  const StagePart& held = parts_[part];
  Rotation by;
  Tensor x = held.embedding ? embed(input) : input;
  input = Tensor{};
  {
    const ModuleScope module(eager_.recorder, "positions");
    by = plain_rotation(x.type);
  }
  for (std::int64_t i = held.first; i < held.last; ++i) {
    eager_.recorder.layer = static_cast<std::int16_t>(i);
    const BlockScope scope(eager_.recorder, i);
    const auto run = [this, i, by](Eager& eager, Tensor given) {
      eager.recorder.layer = static_cast<std::int16_t>(i);
      return layer(layers_[static_cast<std::size_t>(i)], std::move(given), by, Tensor{});
    };
    x = run_block(run, x);
  }
  eager_.recorder.layer = -1;
  if (!held.head) return x;
  {
    const ModuleScope module(eager_.recorder, "final_norm");
    x = norm(x, final_norm_);
  }
  const ModuleScope head(eager_.recorder, "head");
  return linear(eager_, x, head_);
}

Tensor Llama::part_loss(const Tensor& logits, const std::vector<Tensor>& targets) {
  return next_token_loss(logits, targets.front());
}

Tensor Llama::loss(const Batch& batch) {
  Tensor logits, x;
  {
    Tensor mask;
    Rotation by;
    Tensor embedded;  // a variable of the model: it lives to its end
    embedded = embed(batch.tokens);
    x = embedded;
    {
      const ModuleScope module(eager_.recorder, "positions");
      if (attention_ == AttentionChoice::eager)
        mask = causal_mask(eager_, x.type, place.rows, place.length, place.length);
      by = plain_rotation(x.type);
    }
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      eager_.recorder.layer = static_cast<std::int16_t>(i);
      const BlockScope scope(eager_.recorder, static_cast<std::int64_t>(i));
      const auto run = [this, i, by, mask](Eager& eager, Tensor input) {
        eager.recorder.layer = static_cast<std::int16_t>(i);
        return layer(layers_[i], std::move(input), by, mask);
      };
      x = run_block(run, x);
    }
    eager_.recorder.layer = -1;
    const ModuleScope module(eager_.recorder, "final_norm");
    x = norm(x, final_norm_);
  }
  const ModuleScope head(eager_.recorder, "head");
  if (dtensor()) return split_loss(x, batch.targets[0]);
  if (training_.loss_code == LossCode::chunked) return chunked_loss(eager_, x, head_, batch.targets[0]);
  eager_.recorder.host(HostClass::view);
  logits = linear(eager_, aten::view(eager_, x, x.sizes), head_);
  Tensor result = next_token_loss(logits, batch.targets[0]);
  x = Tensor{};
  return result;
}

Tensor Llama::embed(const Tensor& tokens) {
  const ModuleScope module(eager_.recorder, "embeddings");
  return split_.embedding(tokens, tokens_, true);
}

Tensor Llama::norm(const Tensor& x, const Affine& weights) {
  constexpr int kOperations = 8;  // two casts, square, mean, sum, root, two products
  const Tensor result =
      model_.fused_norms ? megatron::rms_norm(eager_, x, *weights.weight) : rms_norm(eager_, x, weights);
  return split_.between(result, model_.fused_norms ? 1 : kOperations);
}

Tensor Llama::split_loss(Tensor& x, const Tensor& labels) {
  Tensor logits = split_.output_projection(x, head_, false);
  if (!split_.splits_logits()) {
    logits = split_.logits(logits, model_.vocabulary);
    Tensor result = next_token_loss(logits, labels);
    x = Tensor{};
    return result;
  }
  const Tensor wide = split_.dispatched(aten::to(eager_, logits, DType::fp32), 2);
  const std::int64_t classes = wide.sizes.last();
  Tensor result = split_.split_loss(view(eager_, wide, {wide.elements() / classes, classes}),
                                    view(eager_, labels, {labels.elements()}));
  x = Tensor{};
  return result;
}

Tensor Llama::next_token_loss(const Tensor& logits, const Tensor& labels) {
  const ModuleScope module(eager_.recorder, "loss");
  // The loss is taken in fp32 whatever the logits are.
  const Tensor wide = aten::to(eager_, logits, DType::fp32);
  return cross_entropy(eager_, view(eager_, wide, {wide.elements() / model_.vocabulary, model_.vocabulary}),
                       view(eager_, labels, {labels.elements()}));
}

Rotation Llama::plain_rotation(DType type) {
  const std::int64_t length = place.length, half = model_.head_dim() / 2;
  using F = PointwiseFunction;
  eager_.recorder.host(HostClass::pointwise, 12);
  const auto of = [&](F function, const Tensor& from, const Dims& sizes) {
    Tensor result = eager_.empty(sizes, DType::fp32);
    aten::pointwise(eager_, function, {&from}, result);
    return result;
  };
  Tensor both, angles, inverse;
  {
    const Tensor steps = aten::to(eager_, aten::arange(eager_, half, DType::int64), DType::fp32);
    const Tensor share = of(F::divide, steps, {half});
    const Tensor power = of(F::power, share, {half});
    inverse = of(F::reciprocal, power, {half});
    const Tensor positions = aten::to(eager_, aten::arange(eager_, length, DType::int64), DType::fp32);
    angles = eager_.empty({1, length, half}, DType::fp32);
    aten::pointwise(eager_, F::mul, {&positions, &inverse}, angles);
  }
  both = aten::join(eager_, {&angles, &angles});
  Rotation result;
  for (Tensor* part : {&result.cosine, &result.sine}) {
    const Tensor value = of(F::rope, both, {1, length, 2 * half});
    *part = aten::view(eager_, aten::to(eager_, value, type), {1, 1, length, 2 * half});
  }
  return result;
}

Tensor Llama::turned(const Tensor& x, const Rotation& by) {
  if (!model_.complex_rotary) return rotated(eager_, x, by);
  eager_.recorder.host(HostClass::pointwise, 3);
  const Tensor wide = aten::to(eager_, x, DType::fp32);
  return aten::to(eager_, aten::complex_mul(eager_, wide, by.cosine), x.type);
}

Tensor Llama::layer(const Layer& weights, Tensor x, const Rotation& by, const Tensor& mask) {
  SelfAttention attended;
  {
    Tensor normed = norm(x, weights.input_norm);
    normed = enter_split(normed);
    attended = self_attention(weights, normed, by, mask);
    normed = Tensor{};
    Tensor sum = add(eager_, x, attended.result);
    attended.result = Tensor{};
    x = std::move(sum);
  }
  Tensor branch = norm(x, weights.attention_norm);
  branch = enter_split(branch);
  branch = feed_forward(weights, branch);
  Tensor sum = add(eager_, x, branch);
  branch = Tensor{};
  return sum;
}

Llama::SelfAttention Llama::self_attention(const Layer& weights, const Tensor& x, const Rotation& by,
                                           const Tensor& mask) {
  const ModuleScope module(eager_.recorder, "attention");
  const std::int64_t batch = x.sizes[0], length = dtensor() ? place.length : x.sizes[1];
  const auto heads = [&](const Affine& projection, std::int64_t count) {
    return transpose(eager_, view(eager_, column_linear(x, projection), {batch, length, count, model_.head_dim()}), 1,
                     2);
  };
  SelfAttention result;
  Tensor y, v, k, q;
  q = heads(weights.query, share(model_.heads));
  k = heads(weights.key, share(model_.key_value_count()));
  v = heads(weights.value, share(model_.key_value_count()));
  {
    Tensor turned_q = turned(q, by), turned_k = turned(k, by);
    q = std::move(turned_q);
    k = std::move(turned_k);
  }
  if (model_.complex_rotary) {
    const std::int64_t times = model_.heads / model_.key_value_count();
    k = repeated(eager_, k, times);
    v = repeated(eager_, v, times);
  }
  const std::int64_t times = model_.complex_rotary ? 1 : model_.heads / model_.key_value_count();
  if (attention_ == AttentionChoice::flash || attention_ == AttentionChoice::cudnn) {
    y = fused_attention(q, k, v, true);
  } else {
    const Tensor every_k = repeated(eager_, k, times), every_v = repeated(eager_, v, times);
    if (attention_ != AttentionChoice::eager) {
      y = fused_attention(q, every_k, every_v, true);
    } else {
      Tensor scores = matmul(eager_, q, transpose(eager_, every_k, 2, 3));
      scores = scale(eager_, scores);
      scores = add(eager_, scores, mask);
      scores = aten::to(eager_,
                        scores.type == DType::fp16 ? softmax_of_fp16(eager_, scores)
                                                   : softmax(eager_, aten::to(eager_, scores, DType::fp32)),
                        q.type);
      scores = dropout(eager_, scores, model_.attention_dropout);
      y = matmul(eager_, scores, every_v);
      result.probabilities = std::move(scores);
    }
  }
  y = contiguous(eager_, transpose(eager_, y, 1, 2));
  y = view(eager_, y, {batch, length, share(model_.attention_width())});
  result.result = row_linear(y, weights.projection);
  return result;
}

Tensor Llama::feed_forward(const Layer& weights, const Tensor& x) {
  const ModuleScope module(eager_.recorder, "feed_forward");
  Tensor gate = column_linear(x, weights.gate);
  gate = activate(eager_, gate, activation_kind());
  Tensor up = column_linear(x, weights.up);
  const Tensor product = mul(eager_, gate, up);
  gate = Tensor{};
  up = Tensor{};
  return row_linear(product, weights.down);
}

}  // namespace ridgeline::families

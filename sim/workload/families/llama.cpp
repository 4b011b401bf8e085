#include "sim/workload/families/llama.h"

namespace ridgeline::families {

namespace aten = eager::aten;

Llama::Llama(Eager& eager, const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention)
    : Family(eager, model, training, attention) {
  const std::int64_t d = model.hidden, inner = model.feed_forward_width(), shared = model.key_value_count() * model.head_dim();
  tokens_ = table(model.vocabulary);
  for (std::int16_t i = 0; i < model.layers; ++i) {
    eager.recorder.layer = i;
    Layer& weights = layers_.emplace_back();
    weights.query = linear_layer(d, d, model.bias);
    weights.key = linear_layer(shared, d, model.bias);
    weights.value = linear_layer(shared, d, model.bias);
    weights.projection = linear_layer(d, d, model.bias);
    weights.gate = linear_layer(inner, d, model.bias);
    weights.up = linear_layer(inner, d, model.bias);
    weights.down = linear_layer(d, inner, model.bias);
    weights.input_norm = norm_layer(false);
    weights.attention_norm = norm_layer(false);
  }
  eager.recorder.layer = -1;
  final_norm_ = norm_layer(false);
  frequencies_ = buffer({1, model.head_dim() / 2, 1}, DType::fp32);
  head_ = model.tie_embeddings ? tokens_ : linear_layer(model.vocabulary, d, false);
}

Tensor Llama::loss(const Batch& batch) {
  Tensor x = embedding(eager_, batch.tokens, tokens_);
  const Rotation by = rotation(x.type);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    eager_.recorder.layer = static_cast<std::int16_t>(i);
    const auto run = [this, i, by](Eager& eager, Tensor input) {
      eager.recorder.layer = static_cast<std::int16_t>(i);
      return layer(layers_[i], std::move(input), by);
    };
    x = run_block(run, x);
  }
  eager_.recorder.layer = -1;
  Tensor h = rms_norm(x, final_norm_);
  x = Tensor{};
  const Tensor logits = linear(eager_, h, head_);
  h = Tensor{};
  // The loss is taken in fp32 whatever the logits are.
  const Tensor rows = view(eager_, aten::to(eager_, logits, DType::fp32), {logits.elements() / model_.vocabulary, model_.vocabulary});
  return cross_entropy(eager_, rows, view(eager_, batch.targets[0], {batch.targets[0].elements()}));
}

Tensor Llama::rms_norm(const Tensor& x, const Affine& weights) {
  const Tensor wide = aten::to(eager_, x, DType::fp32);
  eager_.recorder.host(HostClass::pointwise, 6);
  Tensor variance = aten::mean_last(eager_, aten::square(eager_, wide));
  variance = aten::rsqrt(eager_, aten::add_number(eager_, variance));
  const Tensor normed = aten::to(eager_, aten::mul(eager_, wide, variance), x.type);
  return aten::mul(eager_, weights.weight->value, normed);
}

Llama::Rotation Llama::rotation(DType type) {
  const std::int64_t length = training_.sequence_length, half = model_.head_dim() / 2;
  eager_.recorder.host(HostClass::pointwise, 8);
  const Tensor positions = aten::arange(eager_, length, DType::int64);
  const Tensor wide = aten::view(eager_, aten::to(eager_, positions, DType::fp32), {1, 1, length});
  const Tensor angles = aten::transpose(eager_, aten::bmm(eager_, aten::view(eager_, frequencies_, {1, half, 1}), wide), 1, 2);
  const Tensor both = aten::concatenate(eager_, angles, angles);
  Rotation result;
  for (Tensor* part : {&result.cosine, &result.sine}) {
    const Tensor value = eager_.empty(both.sizes, DType::fp32);
    aten::pointwise(eager_, PointwiseFunction::other, {&both}, value);
    const Tensor scaled = aten::scale(eager_, value);
    *part = aten::view(eager_, aten::to(eager_, scaled, type), {1, 1, length, 2 * half});
  }
  return result;
}

Tensor Llama::rotated(const Tensor& x, const Rotation& by) {
  eager_.recorder.host(HostClass::pointwise, 4);
  eager_.recorder.host(HostClass::concatenate);
  const Tensor straight = aten::mul(eager_, x, by.cosine);
  const Tensor turned = aten::concatenate(eager_, aten::negate(eager_, aten::half(eager_, x, 1)), aten::half(eager_, x, 0));
  return aten::add(eager_, straight, aten::mul(eager_, turned, by.sine));
}

Tensor Llama::repeated(const Tensor& x) {
  if (model_.key_value_count() == model_.heads) return x;
  const std::int64_t times = model_.heads / model_.key_value_count();
  eager_.recorder.host(HostClass::contiguous);
  const Tensor wide = aten::expand(eager_, aten::unsqueeze(eager_, x, 2), {x.sizes[0], x.sizes[1], times, x.sizes[2], x.sizes[3]});
  return aten::reshape(eager_, wide, {x.sizes[0], x.sizes[1] * times, x.sizes[2], x.sizes[3]});
}

Tensor Llama::layer(const Layer& weights, Tensor x, const Rotation& by) {
  {
    const Tensor normed = rms_norm(x, weights.input_norm);
    const Tensor branch = self_attention(weights, normed, by);
    x = add(eager_, x, branch);
  }
  const Tensor branch = feed_forward(weights, rms_norm(x, weights.attention_norm));
  return add(eager_, x, branch);
}

Tensor Llama::self_attention(const Layer& weights, const Tensor& x, const Rotation& by) {
  const std::int64_t batch = x.sizes[0], length = x.sizes[1];
  const auto heads = [&](const Affine& projection, std::int64_t count) {
    return transpose(eager_, view(eager_, linear(eager_, x, projection), {batch, length, count, model_.head_dim()}), 1, 2);
  };
  Tensor q = heads(weights.query, model_.heads);
  Tensor k = heads(weights.key, model_.key_value_count());
  Tensor v = heads(weights.value, model_.key_value_count());
  q = rotated(q, by);
  k = rotated(k, by);
  Tensor y;
  if (attention_ == AttentionChoice::flash || attention_ == AttentionChoice::cudnn) {
    y = attention(eager_, attention_, q, k, v, true, model_.attention_dropout);
  } else {
    k = repeated(k);
    v = repeated(v);
    if (attention_ != AttentionChoice::eager) {
      y = attention(eager_, attention_, q, k, v, true, model_.attention_dropout);
    } else {
      Tensor scores = matmul(eager_, q, transpose(eager_, k, 2, 3));
      scores = scale(eager_, scores);
      const Tensor mask = aten::full(eager_, {1, 1, length, length}, scores.type);
      scores = add(eager_, scores, mask);
      scores = aten::to(eager_, softmax(eager_, aten::to(eager_, scores, DType::fp32)), q.type);
      scores = dropout(eager_, scores, model_.attention_dropout);
      y = matmul(eager_, scores, v);
    }
  }
  const Tensor context = view(eager_, contiguous(eager_, transpose(eager_, y, 1, 2)), {batch, length, model_.hidden});
  return linear(eager_, context, weights.projection);
}

Tensor Llama::feed_forward(const Layer& weights, const Tensor& x) {
  if (model_.activation != Activation::swiglu) {
    Tensor h = activate(eager_, linear(eager_, x, weights.up), activation_kind());
    return linear(eager_, h, weights.down);
  }
  const Tensor gate = activate(eager_, linear(eager_, x, weights.gate), activation_kind());
  const Tensor up = linear(eager_, x, weights.up);
  return linear(eager_, mul(eager_, gate, up), weights.down);
}

}  // namespace ridgeline::families

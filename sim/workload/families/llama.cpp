#include "sim/workload/families/llama.h"

#include "sim/workload/families/chunked_loss.h"

#include "sim/units/user_error.h"
#include "sim/workload/aten/safe_attention.h"
#include "sim/workload/families/key_value_store.h"
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
      if (model.plain) weights.input_norm = norm_layer(false);
      {
        const ModuleScope module(eager.recorder, "attention");
        weights.query = linear_layer(wide, d, attention_bias, LinearRole::query);
        weights.key = linear_layer(shared, d, attention_bias, LinearRole::key);
        weights.value = linear_layer(shared, d, attention_bias, LinearRole::value);
        weights.projection = linear_layer(d, wide, attention_bias, LinearRole::output);
      }
      if (model.plain) weights.attention_norm = norm_layer(false);
      {
        const ModuleScope module(eager.recorder, "feed_forward");
        weights.gate = linear_layer(inner, d, feed_forward_bias, LinearRole::gate);
        weights.up = linear_layer(inner, d, feed_forward_bias, LinearRole::up);
        weights.down = linear_layer(d, inner, feed_forward_bias, LinearRole::down);
      }
      if (model.plain) continue;
      weights.input_norm = norm_layer(false);
      weights.attention_norm = norm_layer(false);
    }
    eager.recorder.layer = -1;
    if (part.head) {
      {
        const ModuleScope module(eager.recorder, "final_norm");
        final_norm_ = norm_layer(false);
      }
      if (!model.plain)
        for (Tensor* table : {&frequencies_, &original_frequencies_})
          *table = buffer({1, model.head_dim() / 2, 1}, type());
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
    Tensor embedded, positions;  // variables of the model: they live to its end
    embedded = embed(batch.tokens);
    x = embedded;
    {
      const ModuleScope module(eager_.recorder, "positions");
      if (!model_.plain) {
        positions = position_ids(eager_, place.length);
        look_for_packed_sequences(eager_, positions, training_.micro_batch, place.length);
      }
      if (attention_ == AttentionChoice::eager) mask = mask_of(x.type);
      else if (training_.mask_given) mask = mask_of(eager_.autocast.on() ? eager_.autocast.type() : x.type);
      by = model_.plain ? plain_rotation(x.type)
                        : rotation(eager_, positions, frequencies_, place.length, model_.head_dim(), x.type);
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

Tensor Llama::next_logits(const Tensor& tokens, const Tensor& positions) {
  Tensor x;
  {
    Tensor mask;
    Rotation by;
    Tensor embedded;
    embedded = embed(tokens);
    x = embedded;
    {
      const ModuleScope module(eager_.recorder, "positions");
      look_for_padding();
      if (attention_ == AttentionChoice::eager) mask = mask_of(x.type);
      else if (store != nullptr && store->fixed()) mask = mask_of(DType::boolean);
      by = rotation(eager_, positions, frequencies_, place.length, model_.head_dim(), x.type);
    }
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      eager_.recorder.layer = static_cast<std::int16_t>(i);
      const BlockScope scope(eager_.recorder, static_cast<std::int64_t>(i));
      x = layer(layers_[i], x, by, mask);
    }
    eager_.recorder.layer = -1;
    const ModuleScope module(eager_.recorder, "final_norm");
    x = rms_norm(eager_, x, final_norm_);
  }
  const ModuleScope head(eager_.recorder, "head");
  eager_.recorder.host(HostClass::view);
  return linear(eager_, last_token(x), head_);
}

Tensor Llama::next_token_loss(const Tensor& logits, const Tensor& labels) {
  const ModuleScope module(eager_.recorder, "loss");
  Tensor targets, padded, wide;
  // The loss is taken in fp32 whatever the logits are.
  wide = aten::to(eager_, logits, DType::fp32);
  if (model_.plain)
    return cross_entropy(eager_, view(eager_, wide, {wide.elements() / model_.vocabulary, model_.vocabulary}),
                         view(eager_, labels, {labels.elements()}));
  eager_.recorder.host(HostClass::pointwise, 4);
  // Labels move one place to the left: padded on the right, cut on the left, made contiguous.
  padded = aten::full(eager_, {labels.sizes[0], labels.sizes[1] + 1}, DType::int64);
  eager_.recorder.op(Copy{CopyKind::permute, DType::int64, labels.sizes[0], labels.sizes[1], 1}, {&labels}, {&padded});
  Tensor shifted = padded;
  shifted.sizes = labels.sizes;
  targets = aten::contiguous(eager_, shifted);
  shifted = Tensor{};
  return cross_entropy(eager_, view(eager_, wide, {wide.elements() / model_.vocabulary, model_.vocabulary}),
                       view(eager_, targets, {targets.elements()}));
}

void Llama::look_for_padding() {
  const Dims tokens{place.rows, place.past + place.length};
  eager_.recorder.host(HostClass::pointwise, 4);
  const Tensor there = eager_.empty(tokens, DType::boolean);
  aten::pointwise(eager_, PointwiseFunction::cast, {}, there);
  const Tensor count = eager_.empty({}, DType::int64), whole = eager_.empty({}, DType::boolean);
  eager_.recorder.op(Reduction{ReductionKind::sum_all, DType::int64, 1, tokens.product()}, {&there}, {&count});
  aten::pointwise(eager_, PointwiseFunction::equal, {&count}, whole);
  eager_.recorder.op(Copy{CopyKind::device_to_host, DType::boolean, 1, 1, 1}, {&whole}, {});
  eager_.recorder.wait_for_gpu();
}

Tensor Llama::mask_of(DType type) { return causal_mask(eager_, type, place.rows, place.length, visible_keys()); }

Tensor Llama::converted_mask(const Tensor& mask, DType type) {
  eager_.recorder.host(HostClass::pointwise, 6);
  const Tensor first = eager_.empty(mask.sizes, type);
  aten::pointwise(eager_, PointwiseFunction::other, {&mask}, first);
  Tensor second = eager_.empty(mask.sizes, type);
  aten::pointwise(eager_, PointwiseFunction::other, {&mask, &first}, second);
  return second;
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
  both = aten::concatenate(eager_, angles, angles);
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
  remember(k, v);
  const bool masked = mask.defined() && attention_ != AttentionChoice::eager;  // a fixed cache, a compiled step
  const bool causal = length > 1 && !masked;  // a single new token may look at all others
  if ((attention_ == AttentionChoice::flash || attention_ == AttentionChoice::cudnn) && !masked) {
    y = fused_attention(q, k, v, causal);
  } else {
    const std::int64_t times = model_.complex_rotary ? 1 : model_.heads / model_.key_value_count();
    const Tensor every_k = repeated(eager_, k, times), every_v = repeated(eager_, v, times);
    // Transformers tells PyTorch of shared keys, which the memory-efficient kernels do not take.
    const bool told =
        times > 1 && attention_ == AttentionChoice::efficient && !model_.plain && !masked && !training_.mask_given;
    if (told && context_)
      throw UserError(
          "training.parallel.context: Transformers hands on keys of fewer heads, which memory-efficient attention does "
          "not take and context_parallel has no other kernel for; expected attention flash, or model.code: plain");
    if (told) {
      eager_.recorder.host(HostClass::attention_fused);
      y = aten::safe_attention(eager_, eager_.autocast.lowered(eager_, q), eager_.autocast.lowered(eager_, every_k),
                               eager_.autocast.lowered(eager_, every_v), Tensor{}, causal,
                               model_.attention_dropout > 0.0);
    } else if (attention_ != AttentionChoice::eager) {
      const Tensor added = masked && !training_.mask_given ? converted_mask(mask, q.type) : Tensor{};
      y = fused_attention(q, every_k, every_v, causal, training_.mask_given ? mask : Tensor{});
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

// Norms and activations of a stack, and its feed-forward parts.
#include "sim/workload/aten/grouped.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/megatron_functions.h"
#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

namespace aten = eager::aten;

namespace {

/// rsqrt(mean(x²)) of each row.
Tensor inverse_root_mean_square(Eager& eager, const Tensor& wide) {
  Tensor factor;
  {
    const Tensor squares = aten::square(eager, wide);
    factor = aten::mean_last(eager, squares);
  }
  factor = aten::add_number(eager, factor);
  factor = aten::rsqrt(eager, factor);
  return factor;
}

/// x · rsqrt(mean(x²)) · w, or · (1 + w), all of it in fp32.
Tensor rms_norm_in_fp32(Eager& eager, const Tensor& x, const Affine& weights, bool plus_one) {
  eager.recorder.host(HostClass::pointwise, 8);
  Tensor normed;
  {
    const Tensor wide = aten::to(eager, x, DType::fp32);
    const Tensor factor = inverse_root_mean_square(eager, wide);
    normed = aten::mul(eager, wide, factor);
  }
  const Tensor& given = weights.weight->value;
  const Tensor weight = plus_one ? aten::add_number(eager, aten::to(eager, given, DType::fp32)) : given;
  return aten::to(eager, aten::mul(eager, normed, weight), x.type);
}

/// As rms_norm, but what was normalised in fp32 stays so unless the weight has 16 bits.
Tensor rms_norm_t5(Eager& eager, const Tensor& x, const Affine& weights) {
  eager.recorder.host(HostClass::pointwise, 6);
  Tensor normed;
  {
    const Tensor wide = aten::to(eager, x, DType::fp32);
    const Tensor factor = inverse_root_mean_square(eager, wide);
    normed = aten::mul(eager, x, factor);
  }
  if (weights.weight->value.type != DType::fp32) normed = aten::to(eager, normed, weights.weight->value.type);
  return aten::mul(eager, weights.weight->value, normed);
}

/// (x - mean) · rsqrt(mean((x - mean)²)) · w in operations of their own, in fp32.
Tensor layer_norm_written_out(Eager& eager, const Tensor& x, const Affine& weights) {
  eager.recorder.host(HostClass::pointwise, 11);
  Tensor normed, variance, mean;
  {
    const Tensor wide = aten::to(eager, x, DType::fp32);
    mean = aten::mean_last(eager, wide);
    variance = aten::mean_last(eager, aten::square(eager, aten::add(eager, wide, mean)));
    const Tensor centred = aten::add(eager, wide, mean);
    normed = aten::mul(eager, centred, aten::rsqrt(eager, aten::add_number(eager, variance)));
  }
  if (weights.bias != nullptr) {  // DeBERTa's: the cast comes before the weight
    normed = aten::to(eager, normed, x.type);
    return aten::add(eager, aten::mul(eager, weights.weight->value, normed), weights.bias->value);
  }
  normed = aten::mul(eager, aten::to(eager, weights.weight->value, DType::fp32), normed);
  return aten::to(eager, normed, x.type);
}

/// With a weight that is kept as its distance from one; all operands are cast under autocast.
Tensor layer_norm_plus_one(Eager& eager, const Tensor& x, const Affine& weights) {
  eager.recorder.host(HostClass::layer_norm_module);
  eager.recorder.host(HostClass::pointwise, 4);
  const auto given = [&](const Tensor& one) {
    return eager.autocast.on() ? aten::to(eager, one, eager.autocast.type()) : one;
  };
  const Tensor weight = aten::add_number(eager, weights.weight->value);
  const Tensor input = given(x), scale = given(weight);
  const Tensor bias = weights.bias != nullptr ? given(weights.bias->value) : Tensor{};
  return aten::layer_norm(eager, input, scale, weights.bias != nullptr ? &bias : nullptr);
}

}  // namespace

Tensor StackNetwork::norm(const Tensor& x, const Affine& weights) {
  if (weights.weight == nullptr) {
    eager_.recorder.host(HostClass::layer_norm_module);
    return aten::to(eager_, aten::layer_norm(eager_, aten::to(eager_, x, DType::fp32)), x.type);
  }
  switch (s_.norm) {
    case NormKind::rms: return rms_norm(eager_, x, weights);
    case NormKind::rms_fused: return megatron::rms_norm(eager_, x, *weights.weight);
    case NormKind::rms_plus_one: return rms_norm_in_fp32(eager_, x, weights, true);
    case NormKind::rms_cast_last: return rms_norm_in_fp32(eager_, x, weights, false);
    case NormKind::rms_t5: return rms_norm_t5(eager_, x, weights);
    case NormKind::layer_written_out: return layer_norm_written_out(eager_, x, weights);
    case NormKind::layer_plus_one: return layer_norm_plus_one(eager_, x, weights);
    case NormKind::layer: break;
  }
  return layer_norm(eager_, aten::contiguous(eager_, x), weights, !s_.plain);
}

Tensor StackNetwork::activated(const Tensor& x, ComposedActivation activation) {
  using Kind = aten::ActivationKind;
  switch (activation) {
    case ComposedActivation::gelu: return activate(eager_, x, Kind::gelu);
    case ComposedActivation::gelu_tanh: return activate(eager_, x, Kind::gelu_tanh);
    case ComposedActivation::gelu_spelled_out:
      eager_.recorder.host(HostClass::pointwise, 4);
      return activate(eager_, x, Kind::gelu_spelled_out);
    case ComposedActivation::relu: return activate(eager_, x, Kind::relu);
    case ComposedActivation::silu: return activate(eager_, x, Kind::silu);
    case ComposedActivation::tanh: return activate(eager_, x, Kind::tanh);
    case ComposedActivation::gelu_written_out:
      eager_.recorder.host(HostClass::pointwise, 8);
      return aten::gelu_written_out(eager_, x);
    case ComposedActivation::quick_gelu:
      eager_.recorder.host(HostClass::pointwise, 3);
      return aten::quick_gelu(eager_, x);
    case ComposedActivation::bloom_gelu:
      eager_.recorder.host(HostClass::pointwise, 9);
      return aten::bloom_gelu(eager_, x);
    case ComposedActivation::relu_squared:
      eager_.recorder.host(HostClass::pointwise, 2);
      return aten::relu_squared(eager_, x);
    case ComposedActivation::clamped_silu:  // of experts with their gate: gated()
      eager_.recorder.host(HostClass::pointwise, 6);
      return aten::quick_gelu(eager_, x);
  }
  return x;
}

void StackNetwork::make_feed_forward(FeedForwardWeights& weights, std::int64_t inner) {
  const ModuleScope module(eager_.recorder, "feed_forward");
  const bool bias = s_.feed_forward_bias;
  if (s_.feed_forward_kind == FeedForwardKind::gated) {
    weights.gate = linear_layer(inner, s_.hidden, bias, LinearRole::gate);
  }
  weights.up = linear_layer(s_.feed_forward_kind == FeedForwardKind::gated_fused ? 2 * inner : inner, s_.hidden, bias,
                            LinearRole::up);
  weights.down = linear_layer(s_.hidden, inner, s_.down_bias.value_or(bias), LinearRole::down);
}

void StackNetwork::make_experts(ExpertWeights& weights) {
  const ModuleScope module(eager_.recorder, "experts");
  const std::int64_t inner = s_.expert_feed_forward > 0 ? s_.expert_feed_forward : s_.inner();
  const std::int64_t wide = s_.feed_forward_kind == FeedForwardKind::plain ? inner : 2 * inner;
  const auto read_inside = [this](Affine layer) {
    for (Parameter* one : {layer.weight, layer.bias})
      if (one != nullptr) one->partial_gradient = site_.split.dtensor();
    return layer;
  };
  weights.router = read_inside(linear_layer(s_.experts, s_.hidden, s_.router_bias));
  if (s_.router_correction) keep_unread({1, s_.experts});
  const auto of_experts = [&](const Dims& sizes) {
    return site_.ranks_of_experts != nullptr ? site_.parameter_of_experts(sizes) : parameter(sizes);
  };
  const std::int64_t own =
      site_.ranks_of_experts != nullptr ? s_.experts / site_.ranks_of_experts->ranks() : s_.experts;
  weights.up = of_experts({own, wide, s_.hidden});
  if (s_.expert_bias) weights.up_bias = of_experts({own, wide});
  weights.down = of_experts({own, s_.hidden, inner});
  if (s_.expert_bias) weights.down_bias = of_experts({own, s_.hidden});
  if (s_.shared_feed_forward > 0) make_feed_forward(weights.shared, s_.shared_feed_forward);
  if (s_.shared_gate) weights.shared_gate = read_inside(linear_layer(1, s_.hidden, false));
}

// A module of experts is entered and left as a whole by DTensor (PrepareModuleInputOutput); by hand each part is.
Tensor StackNetwork::part_two(const LayerWeights& weights, std::int64_t number, Tensor x) {
  if (!s_.has_experts(number)) return feed_forward(weights.feed_forward, std::move(x));
  const ModuleScope module(eager_.recorder, "experts");
  SplitLayers& split = site_.split;
  const ExpertWeights& experts = weights.experts;
  const Tensor entered = split.enter_module(x);
  Tensor result =
      site_.ranks_of_experts != nullptr ? routed_to_ranks(experts, entered, x) : routed(experts, entered, x);
  if (split.dtensor()) {
    if (s_.shared_feed_forward > 0) result = add(eager_, result, shared_experts(experts, entered, true));
    return split.leave(result);
  }
  result = split.leave(result);
  return s_.shared_feed_forward == 0 ? result : add(eager_, result, shared_experts(experts, x, false));
}

Tensor StackNetwork::shared_experts(const ExpertWeights& weights, const Tensor& x, bool inside) {
  Tensor shared = feed_forward(weights.shared, x, inside);
  if (!s_.shared_gate) return shared;
  eager_.recorder.host(HostClass::pointwise, 2);
  const Tensor gate = aten::sigmoid(eager_, linear(eager_, x, weights.shared_gate));
  return aten::mul(eager_, gate, shared);
}

Tensor StackNetwork::activated_inside(const Tensor& x) {
  if (eager_.delivering != nullptr || eager_.promising != nullptr || !runs_again(BlockPart::activation))
    return activated(x, s_.activation);
  return eager::checkpoint(
      eager_, [this](Eager&, const Tensor& given) { return activated(given, s_.activation); }, x);
}

Tensor StackNetwork::feed_forward(const FeedForwardWeights& weights, Tensor given, bool inside) {
  const ModuleScope module(eager_.recorder, "feed_forward");
  SplitLayers& split = site_.split;
  Tensor x = inside ? given : split.enter(given);
  const auto columns = [&](const Affine& layer) {
    if (s_.activation_adds_bias && layer.bias != nullptr && layer.bias == weights.up.bias) {
      Affine product = layer;
      product.bias = nullptr;
      const Tensor rows = split.column_linear(x, product);
      return add(eager_, layer.bias->value, rows);
    }
    return inside ? split.partial_linear(x, layer) : split.column_linear(x, layer);
  };
  const auto down = [&](const Tensor& inner) {
    return inside ? split.partial_linear(inner, weights.down) : dropped_inside(split.row_linear(inner, weights.down));
  };
  if (s_.feed_forward_kind == FeedForwardKind::plain) {
    Tensor inner = columns(weights.up);
    if (s_.plain) x = given = Tensor{};
    inner = activated_inside(inner);
    if (s_.activation_dropout > 0.0) inner = dropout(eager_, inner, s_.activation_dropout);
    if (s_.norm == NormKind::rms_t5) inner = aten::to(eager_, inner, weights.down.weight->value.type);
    if (s_.output_modules) intermediate_ = inner;
    return down(inner);
  }
  Tensor gate, up;
  if (s_.feed_forward_kind == FeedForwardKind::gated) {
    gate = columns(weights.gate);
    gate = activated_inside(gate);
    up = columns(weights.up);
  } else {
    Tensor both = columns(weights.up);
    eager_.recorder.host(HostClass::split);
    auto parts = aten::split_last<2>(eager_, both);
    both = Tensor{};
    gate = activated_inside(parts[0]);
    up = parts[1];
  }
  Tensor product = mul(eager_, gate, up);
  gate = Tensor{};
  up = Tensor{};
  if (s_.activation_dropout > 0.0) product = dropout(eager_, product, s_.activation_dropout);
  if (s_.norm == NormKind::rms_t5) product = aten::to(eager_, product, weights.down.weight->value.type);
  return down(product);
}

}  // namespace ridgeline::families

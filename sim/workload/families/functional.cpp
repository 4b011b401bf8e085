#include "sim/workload/families/functional.h"

#include "sim/workload/aten/safe_attention.h"
#include "sim/workload/aten/scaled.h"

namespace ridgeline::families {

namespace aten = eager::aten;

namespace {

/// bias (if it has one) + rows of x times the weight as it lies, cast in the order of the arguments.
Tensor product_by_inputs(Eager& eager, const Tensor& x, const Affine& layer) {
  eager.recorder.host(eager.autocast.on() ? HostClass::linear_autocast : HostClass::linear);
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] = layer.weight->value.sizes[1];
  const std::int64_t k = x.sizes.last();
  const Tensor rows = aten::reshape(eager, x, {x.elements() / k, k});
  const Tensor bias = layer.bias != nullptr ? eager.autocast.lowered(eager, layer.bias->value) : Tensor{};
  const Tensor input = eager.autocast.lowered(eager, rows);
  const Tensor weight = eager.autocast.lowered(eager, layer.weight->value);
  return aten::view(eager, bias.defined() ? aten::addmm(eager, bias, input, weight) : aten::mm(eager, input, weight),
                    sizes);
}

/// In the type that the layer computes in: autocast's, or the model's.
Tensor product_of_four_bits(Eager& eager, const Tensor& x, const Affine& layer) {
  eager.recorder.host(HostClass::linear_autocast);
  const Tensor bias = layer.bias != nullptr ? eager.autocast.lowered(eager, layer.bias->value) : Tensor{};
  const Tensor input = eager.autocast.lowered(eager, x);
  return aten::four_bit_linear(eager, input, layer.four_bit, layer.bias != nullptr ? &bias : nullptr);
}

/// In 8 bits; the bias is added by itself.
Tensor scaled_product(Eager& eager, const Tensor& x, const Affine& layer) {
  eager.recorder.host(HostClass::linear);
  const Tensor input = eager.autocast.on() ? aten::to(eager, x, eager.autocast.type()) : x;
  const Tensor result = aten::scaled_linear(eager, input, layer.weight->value, eager.scaled_linear);
  if (layer.bias == nullptr) return result;
  eager.recorder.host(HostClass::pointwise, 2);
  const Tensor bias = aten::to(eager, layer.bias->value, result.type);
  return aten::add(eager, result, bias);
}

Tensor product(Eager& eager, const Tensor& x, const Affine& layer) {
  if (layer.scaled) return scaled_product(eager, x, layer);
  if (layer.four_bit.defined()) return product_of_four_bits(eager, x, layer);
  if (layer.by_inputs) return product_by_inputs(eager, x, layer);
  if (!eager.autocast.on()) {
    eager.recorder.host(HostClass::linear);
    return aten::linear(eager, x, layer.weight->value, layer.bias != nullptr ? &layer.bias->value : nullptr);
  }
  eager.recorder.host(HostClass::linear_autocast);
  const Tensor bias = layer.bias != nullptr ? eager.autocast.lowered(eager, layer.bias->value) : Tensor{};
  const Tensor weight = eager.autocast.lowered(eager, layer.weight->value);
  const Tensor input = eager.autocast.lowered(eager, x);
  return aten::linear(eager, input, weight, layer.bias != nullptr ? &bias : nullptr);
}

}  // namespace

Tensor linear(Eager& eager, const Tensor& x, const Affine& layer) {
  Tensor result = product(eager, x, layer);
  if (layer.adapter.down == nullptr || eager.adapters_disabled) return result;
  if (layer.adapter.magnitude != nullptr)
    return adapted_by_magnitude(eager, x, result, layer.adapter, layer.weight->value, layer.bias);
  // Adapters in the type of the layer are torchtune's and LitGPT's, which copy nothing.
  const bool copies = layer.four_bit.defined() && layer.adapter.down->value.type == DType::fp32;
  return copies ? adapted_copy(eager, x, std::move(result), layer.adapter) : adapted(eager, x, result, layer.adapter);
}

Tensor layer_norm(Eager& eager, const Tensor& x, const Affine& layer, bool inside_module) {
  eager.recorder.host(inside_module ? HostClass::layer_norm_module : HostClass::layer_norm);
  if (!eager.autocast.on())
    return aten::layer_norm(eager, x, layer.weight->value, layer.bias != nullptr ? &layer.bias->value : nullptr);
  // Under autocast every argument is cast to fp32, from the last to the first.
  const Tensor bias = layer.bias != nullptr ? aten::to(eager, layer.bias->value, DType::fp32) : Tensor{};
  const Tensor weight = aten::to(eager, layer.weight->value, DType::fp32);
  return aten::layer_norm(eager, aten::to(eager, x, DType::fp32), weight, layer.bias != nullptr ? &bias : nullptr);
}

Tensor embedding(Eager& eager, const Tensor& indices, const Affine& table) {
  eager.recorder.host(HostClass::embedding);
  return aten::embedding(eager, table.weight->value, indices);
}

Tensor matmul(Eager& eager, const Tensor& a, const Tensor& b) {
  eager.recorder.host(HostClass::matmul);
  const auto copied = [](const Tensor& x) {
    const int rank = x.sizes.rank();
    return aten::needs_copy(
        x, {x.sizes.product() / (x.sizes[rank - 1] * x.sizes[rank - 2]), x.sizes[rank - 2], x.sizes[rank - 1]});
  };
  eager.recorder.host(HostClass::matmul_copy, int{copied(a)} + int{copied(b)});
  // Operands are cast from the last to the first, as everywhere under autocast.
  const Tensor second = eager.autocast.lowered(eager, b);
  return aten::matmul(eager, eager.autocast.lowered(eager, a), second);
}

Tensor softmax(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::softmax);
  if (!eager.autocast.on()) return aten::softmax(eager, x, x.type);
  if (x.type == DType::fp16) return aten::softmax(eager, x, DType::fp32);
  if (x.type != DType::fp32) eager.recorder.host(HostClass::cast);
  return aten::softmax(eager, aten::to(eager, x, DType::fp32), DType::fp32);
}

Tensor softmax_of_fp16(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::softmax);
  return aten::softmax(eager, x, DType::fp32);
}

Tensor dropout(Eager& eager, const Tensor& x, double probability) {
  eager.recorder.host(probability > 0.0 ? HostClass::dropout : HostClass::dropout_off);
  return probability > 0.0 ? aten::dropout(eager, x) : x;
}

Tensor activate(Eager& eager, const Tensor& x, aten::ActivationKind kind) {
  eager.recorder.host(HostClass::pointwise);
  return aten::activation(eager, x, kind);
}
Tensor add(Eager& eager, const Tensor& a, const Tensor& b) {
  eager.recorder.host(HostClass::pointwise);
  return aten::add(eager, a, b);
}
Tensor mul(Eager& eager, const Tensor& a, const Tensor& b) {
  eager.recorder.host(HostClass::pointwise);
  return aten::mul(eager, a, b);
}
Tensor scale(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::pointwise);
  return aten::scale(eager, x);
}
Tensor masked_fill(Eager& eager, const Tensor& x, const Tensor& mask) {
  eager.recorder.host(HostClass::masked_fill);
  return aten::masked_fill(eager, x, mask);
}
Tensor view(Eager& eager, const Tensor& x, const Dims& sizes) {
  eager.recorder.host(HostClass::view);
  return aten::view(eager, x, sizes);
}
Tensor transpose(Eager& eager, const Tensor& x, int a, int b) {
  eager.recorder.host(HostClass::transpose);
  return aten::transpose(eager, x, a, b);
}
Tensor contiguous(Eager& eager, const Tensor& x) {
  eager.recorder.host(x.contiguous() ? HostClass::view : HostClass::contiguous);
  return aten::contiguous(eager, x);
}

Tensor attention(Eager& eager, AttentionChoice choice, const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
                 double dropout_probability) {
  eager.recorder.host(choice == AttentionChoice::cudnn ? HostClass::attention_cudnn : HostClass::attention_fused);
  const Tensor value = eager.autocast.lowered(eager, v), key = eager.autocast.lowered(eager, k),
               query = eager.autocast.lowered(eager, q);
  if (choice == AttentionChoice::math)
    return aten::safe_attention(eager, query, key, value, {}, causal, dropout_probability > 0.0);
  return aten::fused_attention(eager, aten::backend_of(choice), query, key, value, causal, dropout_probability > 0.0);
}

Tensor cross_entropy(Eager& eager, const Tensor& logits, const Tensor& target) {
  eager.recorder.host(HostClass::cross_entropy);
  const Tensor log_probabilities = aten::log_softmax(eager, logits);
  if (!eager.autocast.on()) return aten::nll_loss(eager, log_probabilities, target);
  return aten::nll_loss(eager, aten::to(eager, log_probabilities, DType::fp32), target);
}

}  // namespace ridgeline::families

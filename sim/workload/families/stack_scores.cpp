// Queries, keys and values of a stack made into what attention gives: by a fused backend, or by the model's own
// products and softmax.
#include <fmt/format.h>

#include "sim/units/user_error.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/safe_attention.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/shared_sequences.h"
#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

namespace aten = eager::aten;

AttentionChoice StackNetwork::backend_for(std::int64_t times, const Tensor& mask) const {
  // No fused backend gives a mask's gradient, and none takes views that repeat keys.
  if (mask.defined() && mask.requires_gradient()) return AttentionChoice::math;
  if (times > 1 && s_.grouping == GroupingKind::broadcast) return AttentionChoice::math;
  if (mask.defined() && site_.attention == AttentionChoice::flash) return AttentionChoice::efficient;
  // Memory-efficient attention takes no grouped keys: products and softmax run instead, or plain code copies them.
  const bool grouped = times > 1 && s_.grouping == GroupingKind::told && !mask.defined() && !s_.plain;
  return site_.attention == AttentionChoice::efficient && grouped ? AttentionChoice::math : site_.attention;
}

Tensor StackNetwork::attention_apart(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t number) {
  const AttentionBackend backend = aten::backend_of(backend_for(1, {}));
  const Tensor value = eager_.autocast.lowered(eager_, v), key = eager_.autocast.lowered(eager_, k),
               query = eager_.autocast.lowered(eager_, q);
  return aten::attention_apart(eager_, backend, query, key, value, s_.attention_dropout > 0.0,
                               s_.tokens_of_calls(number));
}

Tensor StackNetwork::fused_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                                     bool causal) {
  const bool dropped = s_.attention_dropout > 0.0;
  const std::int64_t times = q.sizes[1] / k.sizes[1];
  const AttentionChoice choice = backend_for(times, mask);
  const bool repeats =
      times > 1 && (mask.defined() || choice == AttentionChoice::math || s_.grouping == GroupingKind::copied ||
                    (s_.plain && choice == AttentionChoice::efficient));
  const auto every = [&](const Tensor& x) {
    if (!repeats) return x;
    if (s_.grouping != GroupingKind::broadcast) return repeated(eager_, x, times);
    return aten::expand(eager_, x, {x.sizes[0], q.sizes[1], x.sizes[2], x.sizes[3]});
  };
  const Tensor every_k = every(k), every_v = every(v);
  Tensor added = mask;
  if (mask.defined() && mask.type == DType::boolean) {
    const DType type = eager_.autocast.on() ? eager_.autocast.type() : q.type;
    // Zero where the mask is set, else the lowest number, both made on the device.
    const Tensor lowest = aten::full(eager_, {}, type), zero = aten::full(eager_, {}, type);
    added = aten::plain(eager_, PointwiseFunction::other, mask.sizes, type, {&mask});
  }
  if (site_.context == nullptr)
    eager_.recorder.host(choice == AttentionChoice::cudnn ? HostClass::attention_cudnn : HostClass::attention_fused);
  const Tensor lowered = added.defined() ? eager_.autocast.lowered(eager_, added) : Tensor{};
  const Tensor value = eager_.autocast.lowered(eager_, every_v), key = eager_.autocast.lowered(eager_, every_k),
               query = eager_.autocast.lowered(eager_, q);
  if (site_.context != nullptr) {
    if (added.defined()) throw UserError(fmt::format("training.parallel.context: {}", kMaskNotShared));
    if (choice == AttentionChoice::math) throw UserError(fmt::format("training.parallel.context: {}", kMathNotShared));
    return site_.context->attention(aten::backend_of(choice), query, key, value, causal, dropped);
  }
  if (choice == AttentionChoice::math)
    return aten::safe_attention(eager_, query, key, value, lowered, causal && !lowered.defined(), dropped);
  return aten::fused_attention(eager_, aten::backend_of(choice), query, key, value, causal && !lowered.defined(),
                               dropped, lowered);
}

Tensor StackNetwork::written_out(const AttentionWeights& weights, const Tensor& q, const Tensor& k, const Tensor& v,
                                 const Tensor& added, const Tensor& slopes, Tensor& masked, Tensor& probabilities) {
  const std::int64_t times = q.sizes[1] / k.sizes[1];
  Tensor every_k = repeated(eager_, k, times), every_v = repeated(eager_, v, times), queries = q;
  if (s_.attention_code == AttentionCode::written_out_fp32) {
    queries = aten::to(eager_, queries, DType::fp32);
    every_k = aten::to(eager_, every_k, DType::fp32);
  }
  Tensor scores = matmul(eager_, queries, transpose(eager_, every_k, 2, 3));
  if (s_.score_scale == ScorePlace::attention) scores = scale(eager_, scores);
  if (s_.score_cap > 0.0) {
    eager_.recorder.host(HostClass::pointwise, 3);
    scores = aten::soft_cap(eager_, scores);
  }
  if (slopes.defined()) scores = add(eager_, scores, slopes);
  if (added.defined() && s_.mask_filled) {
    if (s_.plain) eager_.recorder.host(HostClass::pointwise);
    const Tensor hidden = aten::plain(eager_, PointwiseFunction::equal, added.sizes, DType::boolean, {&added});
    scores = masked_fill(eager_, scores, hidden);
  } else if (added.defined() && s_.relative_in_place) {
    eager_.recorder.host(HostClass::pointwise);
    scores = aten::added_to(eager_, std::move(scores), added);
  } else if (added.defined()) {
    scores = add(eager_, scores, added);
  }
  if (s_.plain || (s_.output_modules && added.defined())) masked = scores;
  if (weights.sinks != nullptr) {
    eager_.recorder.host(HostClass::concatenate);
    const Dims sizes{scores.sizes[0], scores.sizes[1], scores.sizes[2], 1};
    const Tensor sink = aten::expand(eager_, aten::view(eager_, weights.sinks->value, {1, s_.heads, 1, 1}), sizes);
    Tensor all = aten::join(eager_, {&scores, &sink});
    eager_.recorder.host(HostClass::pointwise, 2);
    all = aten::less_largest(eager_, all);  // eager_attention_forward of modeling_gpt_oss.py
    scores = softmax(eager_, all);
    scores = aten::slice_last(eager_, scores, k.sizes[2]);
  } else if (s_.softmax_fp32) {
    scores = aten::to(eager_,
                      scores.type == DType::fp16 ? softmax_of_fp16(eager_, scores)
                                                 : softmax(eager_, aten::to(eager_, scores, DType::fp32)),
                      q.type);
  } else {
    scores = softmax(eager_, scores);
  }
  if (s_.attention_code == AttentionCode::written_out_fp32) scores = aten::to(eager_, scores, v.type);
  scores = dropout(eager_, scores, s_.attention_dropout);
  Tensor y = matmul(eager_, scores, every_v);
  if (!s_.plain) probabilities = std::move(scores);
  return y;
}

// Each copy takes the place of what it was made of.
Tensor StackNetwork::written_out_flat(Tensor& q, Tensor& k, Tensor& v, const Tensor& mask, Tensor& probabilities) {
  const std::int64_t batch = q.sizes[0], count = q.sizes[1], length = q.sizes[2], seen = k.sizes[2];
  const auto flatten = [&](Tensor& x) {
    eager_.recorder.host(HostClass::contiguous);
    x = aten::reshape(eager_, x, {batch * count, x.sizes[2], x.sizes[3]});
  };
  const std::int64_t width = v.sizes[3];
  const auto product = [&](const Tensor& a, const Tensor& b) {
    eager_.recorder.host(HostClass::matmul);
    const Tensor second = eager_.autocast.lowered(eager_, b);
    return aten::bmm(eager_, eager_.autocast.lowered(eager_, a), second);
  };
  Tensor y, dropped, scores;
  for (Tensor* part : {&q, &k, &v}) flatten(*part);
  scores = product(q, transpose(eager_, k, 1, 2));
  if (mask.defined()) {
    scores = add(eager_, view(eager_, scores, {batch, count, length, seen}), mask);
    eager_.recorder.host(HostClass::pointwise, 2);
    const Tensor lowest = aten::full(eager_, {}, DType::fp32);
    scores = view(eager_, aten::at_least(eager_, scores, lowest), {batch * count, length, seen});
  }
  scores = scores.type == DType::fp16 ? softmax_of_fp16(eager_, scores) : softmax(eager_, scores);
  probabilities = scores;
  dropped = dropout(eager_, aten::to(eager_, scores, q.type == DType::fp16 ? DType::fp16 : scores.type),
                    s_.attention_dropout);
  y = view(eager_, product(dropped, v), {batch, count, length, width});
  return y;
}

}  // namespace ridgeline::families

// Fused attention. The `_scaled_dot_product_*` calls take [batch, heads, seq, head_dim]; inside they run a backend's
// own call, which flash and memory-efficient attention write as [batch, seq, heads, head_dim]. `ridgeline::attention`
// (recorded without a GPU) names no backend: it is written as cuDNN's for 16-bit types and head dimensions that has, as
// FlashAttention-2, memory-efficient attention (every mask that FlashAttention-2 does not take) or plain matmuls
// otherwise; whoever replays it chooses anew for the GPU at hand.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {
namespace {

/// Where a call keeps what an attention op needs.
struct Places {
  AttentionBackend backend;
  std::size_t query;  ///< key and value follow
  std::size_t dropout, causal;
  std::size_t output = 0;  ///< of a backward call: saved result and log-sum-exp follow
  bool heads_second = true;
  std::size_t mask = 0;  ///< what is added to the scores, where the call says; 0: not looked for
  std::size_t ends = 0;  ///< cumulative lengths, where the call takes them; the longest is two behind
};

/// Sequences of a call whose operands are [tokens, heads, head_dim]. No recording has their lengths, only how many
/// there are and the longest: one has that, the others share the rest.
PackedLengths lengths_of(const AtenCall& call, const Places& at, std::int64_t tokens) {
  const AtenTensor* ends = at.ends > 0 ? call.tensor(at.ends) : nullptr;
  if (ends == nullptr || ends->sizes.size() != 1 || ends->sizes[0] < 2 || tokens < ends->sizes[0] - 1) return {};
  const std::int64_t count = ends->sizes[0] - 1, even = (tokens + count - 1) / count;
  const std::int64_t said = call.whole(at.ends + 2, 0);
  std::vector<std::int64_t> lengths{count == 1 ? tokens : std::clamp(said, even, tokens - count + 1)};
  for (std::int64_t left = tokens - lengths[0], others = count - 1; others > 0; --others) {
    lengths.push_back(left / others);
    left -= lengths.back();
  }
  return {std::make_shared<const std::vector<std::int64_t>>(std::move(lengths))};
}

MappedOps attention(const AtenCall& call, const Places& at, bool backward) {
  const AtenTensor *q = call.tensor(at.query), *k = call.tensor(at.query + 1), *v = call.tensor(at.query + 2);
  if (q == nullptr || k == nullptr || v == nullptr || q->sizes.size() != k->sizes.size()) return std::nullopt;
  const bool packed = q->sizes.size() == 3;
  if (!packed && q->sizes.size() != 4) return std::nullopt;
  const std::size_t heads = at.heads_second || packed ? 1 : 2, seq = packed ? 0 : at.heads_second ? 2 : 1;
  Attention op{.backend = at.backend, .backward = backward};
  op.causal = call.number(at.causal).value_or(0) > 0;
  op.dropout = call.number(at.dropout).value_or(0) > 0;
  op.type = q->type;
  op.batch = packed ? 1 : q->sizes[0];
  op.heads = q->sizes[heads];
  op.kv_heads = k->sizes[heads];
  op.seq_q = q->sizes[seq];
  op.seq_k = k->sizes[seq];
  op.head_dim = q->sizes.back();
  if (packed) op.lengths = lengths_of(call, at, op.seq_q);
  if (packed && (!op.lengths.any() || op.seq_k != op.seq_q)) return std::nullopt;
  op.head_major = at.heads_second && q->contiguous() && op.heads > 1;
  const AtenTensor* mask = at.mask > 0 ? call.tensor(at.mask) : nullptr;
  op.bias = mask != nullptr;
  if (op.batch < 1 || op.heads < 1 || op.seq_q < 1 || op.seq_k < 1) return std::nullopt;
  const auto statistics = fresh(DType::fp32, {op.batch, op.heads, op.seq_q});
  if (!backward) {
    MappedOp mapped{op, {*q, *k, *v}, {result_of(call, 0, like(*q)), statistics}};
    if (mask != nullptr) mapped.inputs.push_back(*mask);
    return one(std::move(mapped));
  }
  const AtenTensor *dy = call.tensor(0), *y = call.tensor(at.output), *l = call.tensor(at.output + 1);
  MappedOp mapped{op,
                  {dy != nullptr ? *dy : *q, *q, *k, *v, y != nullptr ? *y : *q, l != nullptr ? *l : statistics},
                  {like(*q), like(*k), like(*v)}};
  if (mask != nullptr) mapped.inputs.push_back(*mask);
  return one(std::move(mapped));
}

using B = AttentionBackend;
constexpr Places kFlash{B::flash, 0, 3, 4}, kEfficient{B::efficient, 0, 5, 6}, kCudnn{B::cudnn, 0, 5, 6},
    kFlashBackward{B::flash, 1, 10, 11, 4}, kEfficientBackward{B::efficient, 1, 9, 11, 5},
    kCudnnBackward{B::cudnn, 1, 13, 14, 4};
// The backends' own calls, as a profiler shows them inside; their dropout and mask lie elsewhere.
constexpr Places kFlashInner{B::flash, 0, 7, 8, 0, false, 0, 3},
    kFlashInnerBackward{B::flash, 1, 10, 11, 4, false, 0, 6}, kEfficientInner{B::efficient, 0, 8, 9, 0, false},
    kEfficientInnerBackward{B::efficient, 1, 11, 14, 5, false}, kCudnnInner{B::cudnn, 0, 9, 10},
    kCudnnInnerBackward{B::cudnn, 1, 13, 14, 4};

constexpr Places kAny{B::cudnn, 0, 4, 5, 0, true, 3}, kAnyBackward{B::cudnn, 1, 6, 7, 4, true, 8};

template <bool Backward>
MappedOps any_backend(const AtenCall& call, const MapContext&) {
  Places at = Backward ? kAnyBackward : kAny;
  if (const AtenTensor* q = call.tensor(at.query)) {
    const bool masked = call.tensor(at.mask) != nullptr, half = is_half(q->type);
    const bool learned = masked && call.number(Backward ? 9 : 6).value_or(0) > 0;  // no other gives a mask a gradient
    const bool by_cudnn = q->last() <= 256 && q->last() % 8 == 0;
    const AtenTensor* k = call.tensor(at.query + 1);
    const bool grouped = k != nullptr && k->sizes.size() == 4 && q->sizes.size() == 4 && k->sizes[1] != q->sizes[1];
    if (!half || learned || (masked && !by_cudnn))
      at.backend = grouped || q->last() % (half ? 8 : 4) != 0 ? B::math : B::efficient;
    else if (!by_cudnn) at.backend = B::flash;
  }
  return attention(call, at, Backward);
}

template <const Places& At, bool Backward>
MappedOps rule(const AtenCall& call, const MapContext&) {
  return attention(call, At, Backward);
}

}  // namespace

void add_attention_rules(RuleTable& table) {
  add(table, "ridgeline::attention", any_backend<false>);
  add(table, "ridgeline::attention_backward", any_backend<true>);
  add(table, "aten::_scaled_dot_product_flash_attention", rule<kFlash, false>);
  add(table, "aten::_scaled_dot_product_flash_attention_backward", rule<kFlashBackward, true>);
  add(table, "aten::_scaled_dot_product_efficient_attention", rule<kEfficient, false>);
  add(table, "aten::_scaled_dot_product_efficient_attention_backward", rule<kEfficientBackward, true>);
  add(table, "aten::_scaled_dot_product_cudnn_attention", rule<kCudnn, false>);
  add(table, "aten::_scaled_dot_product_cudnn_attention_backward", rule<kCudnnBackward, true>);
  add(table, "aten::_flash_attention_forward", rule<kFlashInner, false>);
  add(table, "aten::_flash_attention_backward", rule<kFlashInnerBackward, true>);
  add(table, "aten::_efficient_attention_forward", rule<kEfficientInner, false>);
  add(table, "aten::_efficient_attention_backward", rule<kEfficientInnerBackward, true>);
  add(table, "aten::_cudnn_attention_forward", rule<kCudnnInner, false>);
  add(table, "aten::_cudnn_attention_backward", rule<kCudnnInnerBackward, true>);
}

}  // namespace ridgeline::trace

#include "sim/workload/aten/attention.h"

#include <span>

#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/normalization.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/softmax.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/eager/function_node.h"

namespace ridgeline::eager::aten {
namespace {

HostClass backward_class(AttentionBackend backend) {
  return backend == AttentionBackend::cudnn ? HostClass::attention_cudnn_backward : HostClass::attention_fused_backward;
}

struct AttentionBackward final : Node {
  explicit AttentionBackward(const Attention& forward) : Node(backward_class(forward.backend)), op(forward) {
    op.backward = true;
  }
  Attention op;
  SavedTensor key, query, value, logsumexp, result, offset, seed, mask;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor k = key.unpack(eager), q = query.unpack(eager), v = value.unpack(eager), l = logsumexp.unpack(eager),
                 o = result.unpack(eager), random_offset = offset.unpack(eager), random_seed = seed.unpack(eager);
    // The memory-efficient kernels write [batch, seq, heads, head_dim] whatever came back from the host.
    const bool own_order = op.backend == AttentionBackend::efficient && eager.offload == ActivationOffload::pinned;
    const auto gradient_of = [&](const Tensor& x) {
      if (!own_order) return eager.empty_like(x);
      return transpose(eager, eager.empty({x.sizes[0], x.sizes[2], x.sizes[1], x.sizes[3]}, x.type), 1, 2);
    };
    out[0] = gradient_of(q);
    out[1] = gradient_of(k);
    out[2] = gradient_of(v);
    if (op.bias) {
      const Tensor added = mask.unpack(eager);
      // The kernel writes the mask's gradient for every sequence, in rows as long as the mask's.
      if (edge_count > 3 && needs(3)) {
        out[3] = eager.empty({op.batch, op.heads, op.seq_q, added.strides.last(1)}, added.type);
        out[3].strides = out[3].sizes.last() == op.seq_k ? out[3].strides : contiguous_strides(out[3].sizes);
        out[3].sizes = {op.batch, op.heads, op.seq_q, op.seq_k};
      }
      eager.recorder.op(op, {&in[0], &q, &k, &v, &o, &l, &added}, {&out[0], &out[1], &out[2]});
    } else {
      eager.recorder.op(op, {&in[0], &q, &k, &v, &o, &l}, {&out[0], &out[1], &out[2]});
    }
  }
  void release() override {
    key.release();
    query.release();
    value.release();
    logsumexp.release();
    result.release();
    offset.release();
    seed.release();
    mask.release();
  }
};

}  // namespace

AttentionBackend backend_of(AttentionChoice choice) {
  if (choice == AttentionChoice::cudnn) return AttentionBackend::cudnn;
  return choice == AttentionChoice::flash ? AttentionBackend::flash : AttentionBackend::efficient;
}

Attention attention_op(AttentionBackend backend, const Tensor& q, const Tensor& k, bool causal, bool dropout) {
  Attention op;
  op.backend = backend;
  op.causal = causal;
  op.dropout = dropout;
  op.type = q.type;
  op.batch = q.sizes[0];
  op.heads = q.sizes[1];
  op.kv_heads = k.sizes[1];
  op.seq_q = q.sizes[2];
  op.seq_k = k.sizes[2];
  op.head_dim = q.sizes[3];
  return op;
}

namespace {

/// Laid out as the queries, as wide as the values.
Tensor result_like(Eager& eager, const Tensor& q, std::int64_t width) {
  if (width == q.sizes.last()) return eager.empty_like(q);
  const bool by_token = q.strides.last(2) < q.strides.last(1);  // [batch, seq, heads, head_dim] seen the other way
  if (!by_token) return eager.empty({q.sizes[0], q.sizes[1], q.sizes[2], width}, q.type);
  return transpose(eager, eager.empty({q.sizes[0], q.sizes[2], q.sizes[1], width}, q.type), 1, 2);
}

}  // namespace

FusedAttention run_attention(Eager& eager, const Attention& op, const Tensor& q, const Tensor& k, const Tensor& v,
                             const Tensor& mask, bool statistics) {
  // cuDNN keeps the random state in two device words, flash attention in two of its own after the statistics.
  FusedAttention made;
  if (op.backend == AttentionBackend::cudnn) {
    made.seed = eager.empty({1}, DType::int64);
    made.offset = eager.empty({1}, DType::int64);
  }
  constexpr std::int64_t kEfficientRows = 32;  // the memory-efficient kernel pads its statistics to whole warps
  const std::int64_t rows = op.backend == AttentionBackend::efficient
                                ? (op.seq_q + kEfficientRows - 1) / kEfficientRows * kEfficientRows
                                : op.seq_q;
  made.result = result_like(eager, q, v.sizes.last());
  // Flash attention makes them all the same.
  const bool none = !statistics && op.backend != AttentionBackend::flash;
  made.logsumexp = eager.empty(none ? Dims{0} : Dims{op.batch, op.heads, rows}, DType::fp32);
  if (op.backend == AttentionBackend::flash) {
    made.seed = eager.empty({2}, DType::int64);
    made.offset = eager.empty({1}, DType::int64);
  }
  if (op.bias) eager.recorder.op(op, {&q, &k, &v, &mask}, {&made.result, &made.logsumexp});
  else eager.recorder.op(op, {&q, &k, &v}, {&made.result, &made.logsumexp});
  return made;
}

Tensor fused_attention(Eager& eager, AttentionBackend backend, const Tensor& q, const Tensor& k, const Tensor& v,
                       bool causal, bool dropout, const Tensor& mask) {
  Attention op = attention_op(backend, q, k, causal, dropout);
  op.bias = mask.defined();
  if (backend == AttentionBackend::flash && op.seq_q == op.seq_k && !op.bias) op.lengths = eager.packed;
  AttentionBackward* node = nullptr;
  if (eager.needs_node({&q, &k, &v})) {
    node = mask.defined() && mask.requires_gradient() ? &eager.node<AttentionBackward>({&q, &k, &v, &mask}, op)
                                                      : &eager.node<AttentionBackward>({&q, &k, &v}, op);
    node->key = eager.save(k);
    node->query = eager.save(q);
    node->value = eager.save(v);
  }
  const bool kept = eager.keeps_results();
  FusedAttention made;
  if (!kept || !eager.take_kept({&made.offset, &made.seed, &made.result, &made.logsumexp})) {
    made = run_attention(eager, op, q, k, v, mask, node != nullptr);
    if (kept) eager.keep({&made.offset, &made.seed, &made.result, &made.logsumexp});
  }
  auto [offset, seed, result, logsumexp] = std::move(made);
  if (node != nullptr) {
    node->logsumexp = eager.save(logsumexp);
    node->result = eager.save(result);
    if (offset.defined()) node->offset = eager.save(offset);
    if (seed.defined()) node->seed = eager.save(seed);
    if (op.bias) node->mask = eager.save(mask);
    Eager::attach(result, *node);
  }
  return result;
}

namespace {

void attend_apart(Eager& eager, Attention op, std::int64_t images, const std::vector<std::int64_t>& pieces,
                  std::span<const Tensor* const> reads, std::span<const Tensor* const> writes) {
  op.batch = 1;
  for (std::int64_t image = 0; image < images; ++image)
    for (const std::int64_t tokens : pieces) {
      op.seq_q = op.seq_k = tokens;
      eager.recorder.host(op.backward                             ? backward_class(op.backend)
                          : op.backend == AttentionBackend::cudnn ? HostClass::attention_cudnn
                                                                  : HostClass::attention_fused);
      eager.recorder.op(op, reads, writes);
    }
}

/// torch.cat, forward of the results and backward of what was split.
Tensor joined_pieces(Eager& eager, const Tensor& parts, std::int64_t count) {
  Tensor whole = eager.empty(parts.sizes, parts.type);
  eager.recorder.op(Copy{CopyKind::concatenate, parts.type, 1, parts.elements() / count, count}, {&parts}, {&whole});
  return whole;
}

}  // namespace

Tensor attention_apart(Eager& eager, AttentionBackend backend, const Tensor& q, const Tensor& k, const Tensor& v,
                       bool dropout, const std::vector<std::int64_t>& pieces) {
  const Attention op = attention_op(backend, q, k, false, dropout);
  const std::int64_t images = q.sizes[0], count = images * static_cast<std::int64_t>(pieces.size());
  const Dims by_token{images, q.sizes[2], q.sizes[1], q.sizes[3]};
  auto* const node =
      node_for<5>(eager, {&q, &k, &v}, HostClass::split_backward, [op, images, count, pieces, by_token](auto& pass) {
        Attention back = op;
        back.backward = true;
        const auto& [key, query, value, statistics, result] = pass.saved;
        const Tensor dq = pass.eager.empty(by_token, query.type), dk = pass.eager.empty(by_token, key.type),
                     dv = pass.eager.empty(by_token, value.type);
        const Tensor* const reads[] = {&pass.in[0], &query, &key, &value, &result, &statistics};
        const Tensor* const writes[] = {&dq, &dk, &dv};
        attend_apart(pass.eager, back, images, pieces, reads, writes);
        int i = 0;
        for (const Tensor* parts : writes)
          pass.out[static_cast<std::size_t>(i++)] =
              transpose(pass.eager, joined_pieces(pass.eager, *parts, count), 1, 2);
      });
  const Tensor statistics = eager.empty({images, q.sizes[1], q.sizes[2]}, DType::fp32),
               result = eager.empty(by_token, q.type);
  const Tensor* const reads[] = {&q, &k, &v};
  const Tensor* const writes[] = {&result, &statistics};
  attend_apart(eager, op, images, pieces, reads, writes);
  if (node != nullptr)
    node->saved = {eager.save(k), eager.save(q), eager.save(v), eager.save(statistics), eager.save(result)};
  eager.recorder.host(HostClass::concatenate);
  Tensor whole = joined_pieces(eager, result, count);
  attach(whole, node);
  return whole;
}

}  // namespace ridgeline::eager::aten

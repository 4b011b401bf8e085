#include "sim/workload/aten/attention.h"

#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/normalization.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/softmax.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/eager/eager.h"

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

}  // namespace ridgeline::eager::aten

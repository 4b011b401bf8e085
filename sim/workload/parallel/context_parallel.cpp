#include "sim/workload/parallel/context_parallel.h"

#include <fmt/format.h>

#include <utility>

#include "sim/units/user_error.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/parallel/context_turns.h"

namespace ridgeline::parallel {

using eager::Dims;
using eager::Eager;
using eager::Gradients;
using eager::Node;
using eager::SavedTensor;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

/// Three arguments made DTensors, attention dispatched with its sharding looked up anew, its result made a plain
/// tensor; and the gradients. In operations on DTensors of 12.4 and 10.9 us: what is left of 1.2 to 2.0 ms forward
/// and 2.0 to 2.9 ms backward for two and four turns on the host of one H200
/// (measurements/h200/parallel/context_attention.jsonl).
constexpr int kWrapped = 69, kWrappedBackward = 117;

/// Parts of one turn.
struct Turn {
  Tensor q, k, v;
};

Turn turn_of(TurnPart part, const Tensor& q, const Tensor& k, const Tensor& v) {
  switch (part) {
    case TurnPart::whole: break;
    case TurnPart::first_keys: return {q, half_of(k), half_of(v)};
    case TurnPart::last_queries: return {half_of(q), k, v};
  }
  return {q, k, v};
}

struct RingBackward final : Node {
  RingBackward(ContextParallel& all, const Attention& forward)
      : Node(forward.backend == AttentionBackend::cudnn ? HostClass::attention_cudnn_backward
                                                        : HostClass::attention_fused_backward),
        ranks(all),
        op(forward) {}
  ContextParallel& ranks;
  Attention op;  ///< of the first turn
  SavedTensor key, query, value, logsumexp, result, offset, seed;

  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor k = key.unpack(eager), q = query.unpack(eager), v = value.unpack(eager), l = logsumexp.unpack(eager),
                 o = result.unpack(eager), random_offset = offset.unpack(eager), random_seed = seed.unpack(eager);
    eager.recorder.host(HostClass::dtensor_op_backward, kWrappedBackward);
    Tensor dq = zeros(eager, q), dk = zeros(eager, k), dv = zeros(eager, v);
    Tensor keys = plain(eager, k), values = plain(eager, v);
    const std::int64_t all = keys.elements() + values.elements();
    const Dims sizes = keys.sizes, value_sizes = values.sizes;
    Rotater around(eager, ranks.group(), ranks.rotation()),
        gradients(eager, ranks.group(), ContextRotation::all_to_all);
    Turn made;    // gradients of the last turn are variables of the loop …
    Tensor sent;  // … and so are the keys and values that it has sent
    for (std::int64_t turn = 0; turn < ranks.ranks(); ++turn) {
      if (turn > 0) {
        eager.recorder.host(HostClass::view, 4);
        keys = values = shaped(around.next(all), sizes);
        values.sizes = value_sizes;
        values.strides = contiguous_strides(value_sizes);
      }
      if (turn + 1 < ranks.ranks()) {
        sent = one_behind_the_other(eager, keys, values);
        around.exchange(sent);
      }
      const TurnPart part = ranks.part_of(turn, op.causal);
      made = gradients_of(eager, part, turn, turn_of(part, q, keys, values), {in[0].detached(), o, l});
      if (turn > 0) {
        eager.recorder.host(HostClass::view, 4);
        dk = dv = shaped(gradients.next(all), sizes);
        dv.sizes = value_sizes;
        dv.strides = contiguous_strides(value_sizes);
      }
      for (auto [sum, one] : {std::pair{&dk, &made.k}, std::pair{&dv, &made.v}})
        *sum = added(eager, *sum, *one, part == TurnPart::first_keys);
      gradients.exchange(one_behind_the_other(eager, dk, dv));
      dq = added(eager, dq, made.q, part == TurnPart::last_queries);
    }
    out[0] = converted(eager, dq, q.type);
    dk = dv = Tensor{};
    const Tensor both = converted(eager, gradients.next(all), k.type);
    eager.recorder.host(HostClass::view, 4);
    out[1] = shaped(both, sizes);
    out[2] = shaped(both, value_sizes);
  }
  void release() override {
    key.release();
    query.release();
    value.release();
    logsumexp.release();
    result.release();
    offset.release();
    seed.release();
  }

 private:
  struct Saved {
    Tensor gradient, result, logsumexp;
  };

  static Tensor zeros(Eager& eager, const Tensor& x) {
    eager.recorder.host(HostClass::pointwise);
    Tensor result = eager.empty_like(x, DType::fp32);
    aten::pointwise(eager, PointwiseFunction::fill, {}, result);
    return result;
  }
  /// Added in place, or to one half, after which both are joined anew.
  static Tensor added(Eager& eager, const Tensor& sum, const Tensor& part, bool to_half) {
    eager.recorder.host(HostClass::pointwise);
    if (!to_half) {
      aten::add_in_place(eager, sum, part);
      return sum;
    }
    const Tensor changed = half_of(sum);
    aten::add_in_place(eager, changed, part);
    return joined(eager, changed, changed, sum.sizes);
  }
  Turn gradients_of(Eager& eager, TurnPart part, std::int64_t turn, const Turn& x, Saved saved) const {
    Attention one = op;
    one.backward = true;
    one.causal = op.causal && turn == 0;
    one.seq_q = x.q.sizes[kTokens];
    one.seq_k = x.k.sizes[kTokens];
    if (part == TurnPart::last_queries) {
      eager.recorder.host(HostClass::view, 4);
      saved = {half_of(saved.gradient), half_of(saved.result), plain(eager, half_of(saved.logsumexp))};
    }
    if (part == TurnPart::first_keys) eager.recorder.host(HostClass::view, 2);
    eager.recorder.host(HostClass::attention_fused);
    Turn made{eager.empty_like(x.q), eager.empty_like(x.k), eager.empty_like(x.v)};
    eager.recorder.op(one, {&saved.gradient, &x.q, &x.k, &x.v, &saved.result, &saved.logsumexp},
                      {&made.q, &made.k, &made.v});
    return made;
  }
};

/// Statistics of memory-efficient attention are padded, and rows that are not there cannot be merged.
void check_statistics(AttentionBackend backend, std::int64_t queries) {
  constexpr std::int64_t kEfficientRows = 32;
  if (backend == AttentionBackend::efficient && queries % kEfficientRows != 0)
    throw UserError(
        fmt::format("training.parallel.context: memory-efficient attention pads statistics to {} rows, so that "
                    "PyTorch cannot merge those of {} queries; expected a multiple of {}, or another attention",
                    kEfficientRows, queries, kEfficientRows));
}

}  // namespace

ContextParallel::ContextParallel(Eager& eager, const ParallelDescription& description)
    : eager_(eager),
      group_(eager, GroupKind::context, description.context, "context parallel collectives"),
      rotation_(description.rotation),
      rank_(description.context_rank < 0 ? description.context - 1 : description.context_rank) {}

TurnPart ContextParallel::part_of(std::int64_t turn, bool causal) const {
  if (!causal || turn == 0) return TurnPart::whole;
  return turn <= rank_ ? TurnPart::first_keys : TurnPart::last_queries;
}

Tensor ContextParallel::attention(AttentionBackend backend, const Tensor& q, const Tensor& k, const Tensor& v,
                                  bool causal, bool dropout) {
  check_statistics(backend, causal ? q.sizes[kTokens] / kHalves : q.sizes[kTokens]);
  eager_.recorder.host(HostClass::dtensor_op, kWrapped);
  const Attention op = aten::attention_op(backend, q, k, causal, dropout);
  RingBackward* node = nullptr;
  if (eager_.needs_node({&q, &k, &v})) {
    node = &eager_.node<RingBackward>({&q, &k, &v}, *this, op);
    node->key = eager_.save(k);
    node->query = eager_.save(q);
    node->value = eager_.save(v);
  }
  Tensor result, logsumexp;
  aten::FusedAttention made;
  {
    const Tensor queries = q.detached();
    Tensor keys = plain(eager_, k), values = plain(eager_, v);
    const std::int64_t all = keys.elements() + values.elements();
    const Dims sizes = keys.sizes, value_sizes = values.sizes;
    Rotater around(eager_, group_, rotation_);
    Merger merger(eager_);
    for (std::int64_t turn = 0; turn < ranks(); ++turn) {
      if (turn > 0) {
        eager_.recorder.host(HostClass::view, 4);
        keys = values = shaped(around.next(all), sizes);
        values.sizes = value_sizes;
        values.strides = contiguous_strides(value_sizes);
      }
      // The rotater that gathers leaves what is joined after the first turn alone.
      if (turn + 1 < ranks()) around.exchange(one_behind_the_other(eager_, keys, values));
      const TurnPart part = part_of(turn, causal);
      const Turn x = turn_of(part, queries, keys, values);
      if (part != TurnPart::whole) eager_.recorder.host(HostClass::view, part == TurnPart::first_keys ? 2 : 1);
      eager_.recorder.host(HostClass::attention_fused);
      Attention one = op;
      one.causal = causal && turn == 0;
      one.seq_q = x.q.sizes[kTokens];
      one.seq_k = x.k.sizes[kTokens];
      made = aten::run_attention(eager_, one, x.q, x.k, x.v, {}, true);
      merger.step(made, part == TurnPart::last_queries);
    }
    result = merger.result();
    logsumexp = shaped(merger.statistics(), made.logsumexp.sizes);
    logsumexp.sizes[kTokens] = merger.statistics().sizes[kTokens];
    logsumexp.strides = contiguous_strides(logsumexp.sizes);
  }
  if (node != nullptr) {
    node->logsumexp = eager_.save(logsumexp);
    node->result = eager_.save(result);
    if (made.offset.defined()) node->offset = eager_.save(made.offset);
    if (made.seed.defined()) node->seed = eager_.save(made.seed);
    Eager::attach(result, *node);
  }
  return result;
}

void ContextParallel::cut(std::span<const Tensor> buffers, bool causal) {
  using F = PointwiseFunction;
  if (buffers.empty()) return;
  const std::int64_t whole = buffers.front().sizes[1] * ranks();
  const auto copy = [&](const Tensor& from, const Tensor& to) {
    eager_.recorder.host(HostClass::pointwise);
    eager_.recorder.op(Copy{CopyKind::contiguous, from.type, 1, from.elements(), 1}, {&from}, {&to});
  };
  Tensor order;  // tokens as the ranks take them (_HeadTailLoadBalancer)
  if (causal) {
    eager_.recorder.host(HostClass::pointwise, 7);
    const Tensor tokens = aten::arange(eager_, whole, DType::int32),
                 heads = aten::arange(eager_, ranks(), DType::int64),
                 tails = computed(eager_, F::add, computed(eager_, F::add, heads));
    const Tensor first = eager_.empty({whole / 2}, DType::int32), second = eager_.empty({whole / 2}, DType::int32);
    aten::pointwise(eager_, F::index, {&tokens, &heads}, first);
    aten::pointwise(eager_, F::index, {&tokens, &tails}, second);
    order = eager_.empty({whole}, DType::int32);
    eager_.recorder.op(Copy{CopyKind::concatenate, DType::int32, ranks(), whole / ranks() / 2, 2}, {&first, &second},
                       {&order});
  }
  for (const Tensor& buffer : buffers) {
    for (std::int64_t row = 0; causal && row < buffer.sizes[0]; ++row) {
      eager_.recorder.host(HostClass::pointwise);
      const Tensor moved = eager_.empty({whole}, buffer.type);
      aten::pointwise(eager_, F::index, {&moved, &order}, moved);
      copy(moved, buffer);
    }
    eager_.recorder.host(HostClass::dtensor_op);  // distribute_tensor
    Tensor part = eager_.empty(buffer.sizes, buffer.type);
    copy(buffer, part);
    const Tensor clone = eager_.empty(buffer.sizes, buffer.type);
    copy(part, clone);
    part = Tensor{};
    copy(clone, buffer);
  }
}

}  // namespace ridgeline::parallel

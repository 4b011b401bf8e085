#include "sim/workload/parallel/context_parallel.h"

#include <fmt/format.h>

#include <utility>

#include "sim/units/user_error.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"

namespace ridgeline::parallel {

using eager::Dims;
using eager::Eager;
using eager::Gradients;
using eager::Node;
using eager::SavedTensor;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

constexpr int kTokens = 2;  // dimension of [batch, heads, tokens, head_dim]
constexpr int kHalves = 2;
/// Three arguments made DTensors, the dispatch of attention, its result made a plain tensor.
constexpr int kWrapped = 5;

Tensor half_of(const Tensor& x) {
  Tensor result = x.detached();
  result.sizes[kTokens] /= kHalves;
  result.view = true;
  return result;
}

/// A part of a flat buffer.
Tensor shaped(const Tensor& buffer, const Dims& sizes) {
  Tensor result = buffer.detached();
  result.sizes = sizes;
  result.strides = contiguous_strides(sizes);
  result.view = true;
  return result;
}

/// The function `other` or `add` of one or two tensors, in the order of dimensions of the first.
Tensor computed(Eager& eager, PointwiseFunction function, const Tensor& a, const Tensor* b = nullptr) {
  Tensor result = eager.empty_like(a);
  if (b == nullptr) aten::pointwise(eager, function, {&a}, result);
  else aten::pointwise(eager, function, {&a, b}, result);
  return result;
}
Tensor difference(Eager& eager, const Tensor& a, const Tensor& b) {
  eager.recorder.host(HostClass::pointwise);
  return computed(eager, PointwiseFunction::add, a, &b);
}

Tensor converted(Eager& eager, const Tensor& x, DType type) {
  if (x.type == type) return x;
  eager.recorder.host(HostClass::cast);
  Tensor result = eager.empty_like(x, type);
  aten::pointwise(eager, PointwiseFunction::cast, {&x}, result);
  return result;
}

Tensor plain(Eager& eager, const Tensor& x) {
  eager.recorder.host(x.contiguous() ? HostClass::view : HostClass::contiguous);
  return aten::contiguous(eager, x.detached());
}

/// torch.cat([a.flatten(), b.flatten()]).
Tensor one_behind_the_other(Eager& eager, const Tensor& a, const Tensor& b) {
  const Tensor first = plain(eager, a), second = plain(eager, b);
  eager.recorder.host(HostClass::concatenate);
  Tensor result = eager.empty({first.elements() + second.elements()}, a.type);
  eager.recorder.op(Copy{CopyKind::concatenate, a.type, 1, first.elements(), 2}, {&first, &second}, {&result});
  return result;
}

/// One half along the tokens is replaced: torch.cat of both (_partial_update).
Tensor joined(Eager& eager, const Tensor& kept, const Tensor& changed, const Dims& sizes) {
  eager.recorder.host(HostClass::view);
  eager.recorder.host(HostClass::concatenate);
  Tensor result = eager.empty(sizes, changed.type);
  const std::int64_t rows = sizes[0] * sizes[1];
  eager.recorder.op(
      Copy{CopyKind::concatenate_strided, changed.type, rows, result.elements() / rows / kHalves, kHalves},
      {&kept, &changed}, {&result});
  return result;
}

/// Tensors on their way around the ranks (_AllGatherRotater, _AllToAllRotater).
class Rotater {
 public:
  Rotater(Eager& eager, ProcessGroup& group, ContextRotation method) : eager_(eager), group_(group), method_(method) {}

  void exchange(Tensor buffer) {
    const bool gathers = method_ == ContextRotation::all_gather;
    if (gathers && received_.defined()) return;
    received_ = eager_.empty({buffer.elements() * (gathers ? group_.ranks() : 1)}, buffer.type);
    // permute_tensor is an all_to_all_single of which one part is sent and one received: a send and a receive of NCCL.
    work_ = group_.start(gathers ? CollectiveKind::all_gather : CollectiveKind::send_recv, buffer.type,
                         received_.bytes(), buffer, received_);
    sent_ = std::move(buffer);  // NCCL's work holds it until somebody waits
    running_ = true;
  }
  /// What came, waited for: as much as was sent.
  Tensor next(std::int64_t elements) {
    if (std::exchange(running_, false)) group_.wait(work_);
    sent_ = Tensor{};
    return shaped(received_, {elements});
  }

 private:
  Eager& eager_;
  ProcessGroup& group_;
  ContextRotation method_;
  Tensor sent_, received_;
  Work work_;
  bool running_ = false;
};

/// Results of turns into one (_SDPAMerger).
class Merger {
 public:
  explicit Merger(Eager& eager) : eager_(eager) {}

  void step(const aten::FusedAttention& turn, bool partial) {
    type_ = turn.result.type;
    const Tensor result = converted(eager_, turn.result.detached(), DType::fp32);
    Tensor statistics = turn.logsumexp.detached();  // of [batch, heads, tokens, 1]
    eager_.recorder.host(HostClass::view);
    statistics = shaped(statistics, {statistics.sizes[0], statistics.sizes[1], statistics.sizes[kTokens], 1});
    if (!result_.defined()) {
      result_ = result;
      statistics_ = statistics;
      return;
    }
    merge(result, statistics, partial);
  }
  [[nodiscard]] Tensor result() { return converted(eager_, result_, type_); }
  [[nodiscard]] const Tensor& statistics() const { return statistics_; }

 private:
  // out - sigmoid(block_lse - lse) * (out - block_out), lse - logsigmoid(lse - block_lse).
  void merge(const Tensor& result, const Tensor& statistics, bool partial) {
    if (partial) eager_.recorder.host(HostClass::view, kHalves);
    const Tensor before = partial ? half_of(result_) : result_,
                 weights = partial ? half_of(statistics_) : statistics_;
    Tensor merged, merged_weights;
    {
      Tensor product;
      {
        Tensor share = difference(eager_, statistics, weights);
        eager_.recorder.host(HostClass::pointwise, 2);
        share = computed(eager_, PointwiseFunction::other, share);
        const Tensor apart = difference(eager_, before, result);
        product = eager_.empty(apart.sizes, apart.type);  // in the order of the share, its first operand
        aten::pointwise(eager_, PointwiseFunction::mul, {&share, &apart}, product);
      }
      merged = difference(eager_, before, product);
    }
    {
      Tensor share = difference(eager_, weights, statistics);
      eager_.recorder.host(HostClass::pointwise);
      share = computed(eager_, PointwiseFunction::other, share);
      merged_weights = difference(eager_, weights, share);
    }
    if (!partial) {
      statistics_ = merged_weights;
      result_ = merged;
      return;
    }
    statistics_ = joined(eager_, weights, merged_weights, statistics_.sizes);
    result_ = joined(eager_, before, merged, result_.sizes);
  }

  Eager& eager_;
  DType type_ = DType::fp32;
  Tensor result_, statistics_;
};

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
    eager.recorder.host(HostClass::dtensor_op_backward, kWrapped);
    Tensor dq = zeros(eager, q), dk = zeros(eager, k), dv = zeros(eager, v);
    Tensor keys = plain(eager, k), values = plain(eager, v);
    const std::int64_t all = keys.elements() + values.elements();
    const Dims sizes = keys.sizes;
    Rotater around(eager, ranks.group(), ranks.rotation()),
        gradients(eager, ranks.group(), ContextRotation::all_to_all);
    Turn made;  // gradients of the last turn are variables of the loop
    for (std::int64_t turn = 0; turn < ranks.ranks(); ++turn) {
      if (turn > 0) {
        eager.recorder.host(HostClass::view, 4);
        keys = values = shaped(around.next(all), sizes);
      }
      if (turn + 1 < ranks.ranks()) around.exchange(one_behind_the_other(eager, keys, values));
      const TurnPart part = ranks.part_of(turn, op.causal);
      made = gradients_of(eager, part, turn, turn_of(part, q, keys, values), {in[0].detached(), o, l});
      if (turn > 0) {
        eager.recorder.host(HostClass::view, 4);
        dk = dv = shaped(gradients.next(all), sizes);
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
    out[2] = shaped(both, sizes);
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
  const Attention op = aten::attention_op(eager_, backend, q, k, causal, dropout);
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
    const Dims sizes = keys.sizes;
    Rotater around(eager_, group_, rotation_);
    Merger merger(eager_);
    for (std::int64_t turn = 0; turn < ranks(); ++turn) {
      if (turn > 0) {
        eager_.recorder.host(HostClass::view, 4);
        keys = values = shaped(around.next(all), sizes);
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
    const Tensor tokens = aten::arange(eager_, whole, DType::int32), heads = aten::arange(eager_, ranks(), DType::int64),
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

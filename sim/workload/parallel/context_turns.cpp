#include "sim/workload/parallel/context_turns.h"

#include <utility>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"

namespace ridgeline::parallel {

using eager::Dims;
using eager::Eager;
using eager::Tensor;
namespace aten = eager::aten;

Tensor half_of(const Tensor& x) {
  Tensor result = x.detached();
  result.sizes[kTokens] /= kHalves;
  result.view = true;
  return result;
}

Tensor shaped(const Tensor& buffer, const Dims& sizes) {
  Tensor result = buffer.detached();
  result.sizes = sizes;
  result.strides = contiguous_strides(sizes);
  result.view = true;
  return result;
}

Tensor computed(Eager& eager, PointwiseFunction function, const Tensor& a, const Tensor* b) {
  Tensor result = eager.empty_like(a);
  if (b == nullptr) aten::pointwise(eager, function, {&a}, result);
  else aten::pointwise(eager, function, {&a, b}, result);
  return result;
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

Tensor one_behind_the_other(Eager& eager, const Tensor& a, const Tensor& b) {
  const Tensor first = plain(eager, a), second = plain(eager, b);
  eager.recorder.host(HostClass::concatenate);
  Tensor result = eager.empty({first.elements() + second.elements()}, a.type);
  eager.recorder.op(Copy{CopyKind::concatenate, a.type, 1, first.elements(), 2}, {&first, &second}, {&result});
  return result;
}

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

void Rotater::exchange(Tensor buffer) {
  const bool gathers = method_ == ContextRotation::all_gather;
  if (gathers && received_.defined()) return;
  received_ = eager_.empty({buffer.elements() * (gathers ? group_.ranks() : 1)}, buffer.type);
  // permute_tensor is an all_to_all_single of which one part is sent and one received: a send and a receive of NCCL.
  work_ = group_.start(gathers ? CollectiveKind::all_gather : CollectiveKind::send_recv, buffer.type, received_.bytes(),
                       buffer, received_);
  sent_ = std::move(buffer);  // NCCL's work holds it until somebody waits
  running_ = true;
}

Tensor Rotater::next(std::int64_t elements) {
  if (std::exchange(running_, false)) group_.wait(work_);
  sent_ = Tensor{};
  return shaped(received_, {elements});
}

namespace {

Tensor difference(Eager& eager, const Tensor& a, const Tensor& b) {
  eager.recorder.host(HostClass::pointwise);
  return computed(eager, PointwiseFunction::add, a, &b);
}

}  // namespace

void Merger::step(const aten::FusedAttention& turn, bool partial) {
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

// out - sigmoid(block_lse - lse) * (out - block_out), lse - logsigmoid(lse - block_lse).
void Merger::merge(const Tensor& result, const Tensor& statistics, bool partial) {
  if (partial) eager_.recorder.host(HostClass::view, kHalves);
  const Tensor before = partial ? half_of(result_) : result_, weights = partial ? half_of(statistics_) : statistics_;
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

}  // namespace ridgeline::parallel

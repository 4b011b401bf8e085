// What a turn of context parallel attention is made of: halves of tensors, what goes around the ranks, and the merging
// of results, operation by operation as torch/distributed/tensor/experimental/_context_parallel/_attention.py runs
// them.
#pragma once

#include "sim/workload/aten/attention.h"
#include "sim/workload/eager/eager.h"
#include "sim/workload/parallel/communication.h"
#include "sim/workload/parallel/parallel.h"

namespace ridgeline::parallel {

inline constexpr int kTokens = 2;  ///< dimension of [batch, heads, tokens, head_dim]
inline constexpr int kHalves = 2;

/// Along the tokens, one or the other: a view.
eager::Tensor half_of(const eager::Tensor& x);
/// A part of a flat buffer: a view.
eager::Tensor shaped(const eager::Tensor& buffer, const eager::Dims& sizes);
/// A function of one or two tensors, in the order of dimensions of the first.
eager::Tensor computed(eager::Eager& eager, PointwiseFunction function, const eager::Tensor& a,
                       const eager::Tensor* b = nullptr);
/// A cast, where it is one.
eager::Tensor converted(eager::Eager& eager, const eager::Tensor& x, DType type);
/// The tensor itself where it is contiguous, else a copy.
eager::Tensor plain(eager::Eager& eager, const eager::Tensor& x);
/// torch.cat([a.flatten(), b.flatten()]).
eager::Tensor one_behind_the_other(eager::Eager& eager, const eager::Tensor& a, const eager::Tensor& b);
/// One half along the tokens is replaced: torch.cat of both (_partial_update).
eager::Tensor joined(eager::Eager& eager, const eager::Tensor& kept, const eager::Tensor& changed,
                     const eager::Dims& sizes);

/// Tensors on their way around the ranks (_AllGatherRotater, _AllToAllRotater).
class Rotater {
 public:
  Rotater(eager::Eager& eager, ProcessGroup& group, ContextRotation method)
      : eager_(eager), group_(group), method_(method) {}

  /// Starts; where all ranks' were gathered before, nothing.
  void exchange(eager::Tensor buffer);
  /// What came, waited for: as many elements as were sent.
  eager::Tensor next(std::int64_t elements);

 private:
  eager::Eager& eager_;
  ProcessGroup& group_;
  ContextRotation method_;
  eager::Tensor sent_, received_;
  Work work_;
  bool running_ = false;
};

/// Results of turns into one, in fp32 (_SDPAMerger).
class Merger {
 public:
  explicit Merger(eager::Eager& eager) : eager_(eager) {}

  /// `partial`: of the second half of the queries alone.
  void step(const eager::aten::FusedAttention& turn, bool partial);
  /// In the type that turns have.
  [[nodiscard]] eager::Tensor result() { return converted(eager_, result_, type_); }
  [[nodiscard]] const eager::Tensor& statistics() const { return statistics_; }

 private:
  void merge(const eager::Tensor& result, const eager::Tensor& statistics, bool partial);

  eager::Eager& eager_;
  DType type_ = DType::fp32;
  eager::Tensor result_, statistics_;
};

}  // namespace ridgeline::parallel

// What ranks that share a network's layers exchange around them, forward and backward: the two conjugate pairs of
// Shoeybi et al., "Megatron-LM" (2019), and Korthikanti et al., "Reducing Activation Recomputation" (2022).
#pragma once

#include "sim/workload/eager/tape.h"
#include "sim/workload/parallel/communication.h"

namespace ridgeline::parallel {

/// Bytes of an all-gather's or a reduce-scatter's whole are `ranks` times those of a rank's part.
class TensorParallel {
 public:
  TensorParallel(eager::Eager& eager, std::int64_t ranks)
      : eager_(eager), group_(eager, GroupKind::tensor, ranks, "tensor parallel collectives") {}

  [[nodiscard]] std::int64_t ranks() const { return group_.ranks(); }
  [[nodiscard]] ProcessGroup& group() { return group_; }

  /// Into a split region: nothing forward, the gradients of all ranks are added up backward.
  eager::Tensor enter(const eager::Tensor& x);
  /// Out of it: the parts of all ranks are added up in place, nothing backward.
  eager::Tensor leave(const eager::Tensor& x);
  /// Columns of all ranks, of which each computes with all: backward this rank's.
  eager::Tensor gather_columns(const eager::Tensor& x);
  /// This rank's columns of what each computed: backward those of all are gathered.
  eager::Tensor own_columns(const eager::Tensor& x);
  /// In place, on the current stream, without autograd.
  void all_reduce(const eager::Tensor& x);
  /// Parts along dimension `along` to the whole, a fresh tensor, on the current stream, without autograd.
  eager::Tensor all_gather(const eager::Tensor& part, int along);
  /// The sum of all ranks' wholes, this rank's part of it: likewise.
  eager::Tensor reduce_scatter(const eager::Tensor& whole, int along);

 private:
  struct ColumnsBackward;
  eager::Tensor columns(const eager::Tensor& x, bool all);

  eager::Eager& eager_;
  ProcessGroup group_;
};

}  // namespace ridgeline::parallel

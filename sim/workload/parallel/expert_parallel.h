// Experts spread over ranks: each rank holds some experts of a layer, and tokens are sent to the rank of their expert
// and back, by one torch.distributed.all_to_all_single each way and the same in the backward pass.
//
// The ranks of a group of experts see different data: they are neighbours among the data parallel ranks. What is no
// expert is kept equal over all of these; experts over the ranks that hold the same ones (GroupKind::expert_data).
#pragma once

#include "sim/workload/eager/parameter.h"
#include "sim/workload/parallel/communication.h"
#include "sim/workload/parallel/parallel.h"

namespace ridgeline::parallel {

class ExpertParallel {
 public:
  ExpertParallel(eager::Eager& eager, const ParallelDescription& description);

  [[nodiscard]] std::int64_t ranks() const { return group_.ranks(); }
  /// Places of each expert in those of an even choice; 0: as many as tokens come.
  [[nodiscard]] double capacity() const { return capacity_; }

  /// Rows [rows, width] in the order of the ranks that get them: as many come as go, where tokens choose evenly.
  eager::Tensor exchange(const eager::Tensor& rows);
  /// How many rows of each expert a rank sends: what the others send to this one.
  eager::Tensor exchange_counts(const eager::Tensor& counts);

  /// Behind the last backward pass: gradients of experts, sums over the tokens of all ranks of the group, become means,
  /// and those of equal experts are added up. `reduced`: what is sharded was added up already.
  void finish_gradients(eager::Parameters& parameters, bool reduced);
  /// The norm of all gradients takes a sum over ranks that hold other experts.
  void add_up_norm();

 private:
  struct ExchangeBackward;

  eager::Eager& eager_;
  ProcessGroup group_;
  std::optional<ProcessGroup> copies_;  ///< ranks that hold the same experts; none: this one alone
  double capacity_;
};

}  // namespace ridgeline::parallel

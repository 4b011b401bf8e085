// ZeroRedundancyOptimizer: each rank keeps the states of some parameters, updates those, and sends them to the others.
//
// Follows torch/distributed/optim/zero_redundancy_optimizer.py of PyTorch 2.11: whole tensors, the largest first, each
// to the rank that has least; after the update one broadcast a tensor, or one a rank where parameters lie in buckets.
#pragma once

#include <span>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/parallel/communication.h"

namespace ridgeline::parallel {

/// Rank of each tensor.
std::vector<std::size_t> share_out(std::span<const std::int64_t> elements, std::size_t ranks);

class ZeroRedundancy {
 public:
  /// For the rank that has most. With `buckets`, parameters of each rank move into one buffer.
  ZeroRedundancy(eager::Eager& eager, eager::Parameters& parameters, ProcessGroup& group, bool buckets);

  /// What this rank updates, with the gradients of the parameters; given back by finish_step.
  eager::Parameters& begin_step();
  /// Everybody sends what he has updated.
  void finish_step();

 private:
  eager::Eager& eager_;
  eager::Parameters& parameters_;
  ProcessGroup& group_;
  std::vector<std::size_t> rank_of_;  ///< by parameter
  std::size_t rank_ = 0;
  eager::Parameters own_;
  std::vector<eager::Tensor> buckets_;  ///< by rank
};

}  // namespace ridgeline::parallel

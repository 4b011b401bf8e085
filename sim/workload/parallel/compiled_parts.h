// The parts of a micro-batch that torch.compile makes inside DistributedDataParallel (graph_split.h): where the records
// of each lie, and when its gradients are handed to the buckets.
#pragma once

#include <vector>

#include "sim/workload/parallel/data_parallel.h"
#include "sim/workload/parallel/graph_split.h"

namespace ridgeline::parallel {

class CompiledParts {
 public:
  CompiledParts(eager::Eager& eager, const OpTrace& trace, const eager::Parameters& parameters,
                DistributedDataParallel& replicated, const ParallelDescription& how);

  /// The forward pass lies in `whole`; the backward pass is next.
  void cut(const CompiledRange& whole);
  /// The backward pass, which began at that of `whole`, is over.
  void finish(const CompiledRange& whole);
  [[nodiscard]] const std::vector<CompiledRange>& ranges() const { return ranges_; }

 private:
  void end_part();

  eager::Eager& eager_;
  const OpTrace& trace_;
  const eager::Parameters& parameters_;
  DistributedDataParallel& replicated_;
  const ParallelDescription& how_;
  std::vector<GraphPart> cuts_;
  std::vector<CompiledRange> ranges_;
  std::size_t running_ = 0;  ///< parts whose backward pass is not over
};

}  // namespace ridgeline::parallel

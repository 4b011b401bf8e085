// Where torch.compile cuts the graph of a network inside DistributedDataParallel, so that buckets can be sent while the
// rest of the backward pass runs.
//
// After torch/_dynamo/backends/distributed.py (DDPOptimizer): from the last operation to the first, a part holds
// operations until their parameters fill a bucket. Each part is compiled alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/op_trace.h"

namespace ridgeline::parallel {

struct GraphPart {
  std::uint32_t begin = 0;  ///< record of the forward pass
  /// What autograd's node of the part hands gradients to, in order: entries of the parameters, and `kEarlier` for an
  /// earlier part, where the last tensor that this one takes from it stands.
  std::vector<std::size_t> inputs;
  static constexpr std::size_t kEarlier = ~std::size_t{0};
};

/// In the order of the forward pass; parts begin at operations as Python calls them, with the casts of their operands.
/// `bucket_cap` in bytes; the part with the end of the network is full at 1 MiB.
std::vector<GraphPart> split_graph(const OpTrace& trace, StepRange forward, const eager::Parameters& parameters,
                                   std::int64_t bucket_cap);

/// In which order the gradients of a part arrive: autograd's engine takes equal nodes from a heap.
std::vector<std::size_t> order_of_arrival(const GraphPart& part);

}  // namespace ridgeline::parallel

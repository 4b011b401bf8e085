// From the eager records of one micro-batch to the graph that torch.compile works on.
#pragma once

#include "sim/workload/compile/graph.h"
#include "sim/workload/compile/part_storages.h"

namespace ridgeline::compile {

/// Entry `number` of the compiled ranges. `ops` may grow: products with sizes that tensor cores cannot read aligned are
/// padded. `shared` is empty where no micro-batch is cut into parts.
Graph build_graph(OpTrace& trace, std::uint32_t number, const PartStorages& shared);

}  // namespace ridgeline::compile

// From the eager records of one micro-batch to the graph that torch.compile works on.
#pragma once

#include "sim/workload/compile/graph.h"

namespace ridgeline::compile {

/// `ops` may grow: products with sizes that tensor cores cannot read aligned are padded.
Graph build_graph(OpTrace& trace, const CompiledRange& range);

}  // namespace ridgeline::compile

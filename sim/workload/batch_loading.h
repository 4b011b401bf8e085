// Where a micro-batch comes from before its forward pass.
#pragma once

#include "sim/workload/families/family.h"

namespace ridgeline {

/// A DataLoader without workers over a TensorDataset, then tensor.to(device) from pageable memory. The host takes one
/// row of each tensor for each sequence (a view; its copy into the batch is less), stacks each tensor, and waits for
/// each copy to the device. `extra` tensors of the size of the tokens come besides tokens and targets (masks, types).
void load_batch(eager::Eager& eager, const families::Batch& batch, int extra);

}  // namespace ridgeline

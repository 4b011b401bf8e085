// What a wrapper for data-parallel training does to the gradients of one process.
#pragma once

#include "sim/workload/eager/parameter.h"

namespace ridgeline::optimizers {

/// apex.parallel.DistributedDataParallel with one process: gradients are copied into a buffer, reduced over one rank in
/// place (nothing moves), multiplied by one, copied back. apex does this bucket by bucket on another stream; here it is
/// one pass after the backward pass.
void exchange_gradients(eager::Eager& eager, const eager::Parameters& parameters);

}  // namespace ridgeline::optimizers

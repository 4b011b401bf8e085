// Launches of kernels that torch.compile generated, with the grid and registers that the profiler saw.
#pragma once

#include "fit/law_problem.h"

namespace ridgeline::fit {

/// Adds the generated kernels of compiled steps (files of kind "fused-kernels"; a third of the steps is held out) and
/// of single functions under torch.compile (kind "calls"; cold and warm, a third of the shapes). Throws UserError for a
/// file that cannot be read.
void add_generated(const Measurements& measurements, const Laboratory& laboratory, Collected& collected);

}  // namespace ridgeline::fit

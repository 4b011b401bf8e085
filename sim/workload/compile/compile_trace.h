// torch.compile: an eager trace with the forward and backward pass of every micro-batch replaced by two graphs of
// generated kernels and library calls. What the script does itself (scaling, clipping, optimizer) stays as it is.
#pragma once

#include "sim/workload/op_trace.h"

namespace ridgeline::compile {

/// `eager.compiled_ranges` says what is replaced. `sms`: of the GPU compiled for, which long sums are cut for.
OpTrace compile_trace(OpTrace eager, int sms);

}  // namespace ridgeline::compile

// FlashAttention over packed sequences as it was timed (files of kind "packed-attention").
#pragma once

#include <vector>

#include "sim/study/validation/measured_ops.h"

namespace ridgeline {

/// A forward and a backward pass for each row, with the kernels that the profiler saw; `machine` is 0. The file must
/// outlive the result. Throws UserError for a row that is no kernel case.
std::vector<MeasuredOp> load_packed_attention(const MeasuredFile& file);

}  // namespace ridgeline

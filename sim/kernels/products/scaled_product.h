// fp32 products of few columns with a bias: cleared, scaled, added up in place by k, and the bias added at last, each
// by a kernel of its own (sgemm_largek).
#pragma once

#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/hardware/software.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

/// Whether `op` runs so: 11 of 12 profiled products of an H200 in these bounds.
bool is_scaled_first(const Matmul& op, const Gpu& gpu);

/// The four kernels of `op`, for which is_scaled_first holds; `reads` are A, B and the bias.
void append_scaled_first(std::vector<KernelLaunch>& launches, const Matmul& op, const std::vector<Access>& reads,
                         const std::vector<Access>& writes);

}  // namespace ridgeline

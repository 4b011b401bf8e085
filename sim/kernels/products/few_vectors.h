// A matrix times a few vectors (up to 16): kernels that read the matrix once and keep every vector's sum in registers.
#pragma once

#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

/// Whether `op` runs one, unless a tiled kernel is faster. The vectors are the rows of A.
bool is_few_vectors(const Matmul& op, const Gpu& gpu);

/// The kernel of `op`, for which is_few_vectors holds; `reads` are A, B and what else is read.
KernelLaunch few_vectors_launch(const Matmul& op, const std::vector<Access>& reads, const std::vector<Access>& writes);

}  // namespace ridgeline

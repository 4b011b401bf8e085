// Products of groups of rows that lie behind one another (the tokens of each expert): torch._grouped_mm.
#pragma once

#include "sim/kernels/lowering.h"

namespace ridgeline {

/// `op.batch` products of equal groups. On compute capability 9.0 and 10.x bf16 runs PyTorch's own CUTLASS kernel, of
/// one of two tiles; elsewhere PyTorch takes one product after another. Throws as lower_matmul() does.
LoweredOp lower_grouped_mm(const Matmul& op, const Gpu& gpu, const Software& software,
                           const std::shared_ptr<const GpuMenus>& menus);

}  // namespace ridgeline

// The kernel that a recording names for a product, as a menu of one entry: what the library chose there is not chosen
// again.
#pragma once

#include <memory>

#include "sim/kernels/products/tile_menu.h"
#include "sim/workload/op.h"

namespace ridgeline {

/// Gives `problem` the instructions of `ran` and returns the menu of that kernel alone; nothing where there is no such
/// kernel on this GPU (its instructions or its tile), or it could not run the product. `problem` is then unchanged.
std::shared_ptr<const GpuMenus> menu_of_recorded(const LibraryKernel& ran, GemmWork& problem, const Gpu& gpu);

}  // namespace ridgeline

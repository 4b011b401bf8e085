// A product in whichever of its kernels is fastest: tiled ones as their library ranks them, and kernels of other kinds
// beside them.
//
// The launches shown are those that are fastest with cold operands. Their time is that of the same choice made for what
// the L2 holds when they run: the least over all ways, none of which a better chip makes slower.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/kernels/products/tile_menu.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

/// A kernel that reads the product's operands, then what runs beside it.
using ProductWay = std::vector<KernelLaunch>;

/// Ways to compute one product on one GPU: `problem` in the tiles of `menus`, where it is given, or any of `others`.
struct ProductWays {
  std::optional<GemmWork> problem{};
  std::shared_ptr<const GpuMenus> menus{};
  std::vector<ProductWay> others{};
};

/// Appends the fastest way. `reads` and `writes` are those of tiled kernels. Throws std::invalid_argument where no
/// kernel fits an SM.
void append_fastest(std::vector<KernelLaunch>& launches, ProductWays ways, const Gpu& gpu, std::vector<Access> reads,
                    const std::vector<Access>& writes);

}  // namespace ridgeline

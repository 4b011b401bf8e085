// Which tile and split a library picks for a matrix product: of the menu's entries the one that ranks best, with those
// that it may take instead (sim/timing/likely_time.h).
//
// The library's heuristics are tuned to be close to the best, and several tiles usually tie within 1 to 2 %: this
// predicts time well, which kernel it is in half of the products. Do not read more into the choice than its time.
#pragma once

#include <limits>

#include "sim/kernels/products/tile_menu.h"
#include "sim/workload/op.h"

namespace ridgeline {

struct GemmSelection {
  GemmTile tile;
  GemmWork::Family family = GemmWork::Family::simt;
  const TileChoice* choice = nullptr;  ///< null: no kernel fits
  int splits = 1;
  double seconds = std::numeric_limits<double>::infinity();  ///< product with its memset or split reduction
  /// The same, expected over the kernels that the library may take instead.
  double expected = std::numeric_limits<double>::infinity();
  bool clears_counter = false;
};

/// Family, alignment and shape of the kernel class that multiplies these operands on this GPU; its tile is not chosen
/// yet. Types without a tensor-core path (bf16 before Ampere, fp32) run on the CUDA cores. Throws std::invalid_argument
/// where an operand cannot be 2:4 sparse.
GemmWork gemm_problem(const Matmul& op, const Gpu& gpu);

/// `problem` states family, type, shape, layout and alignment; its tile is ignored. The choice points into `menus`.
/// `missed`: shares of operands and results that are not in the L2.
GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu, const GpuMenus& menus,
                          const GemmMisses& missed = {});
/// From one menu alone, of the kernels that rank better than `of_interest` seconds.
GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu, const GemmConstants& constants, const GpuMenu& menu,
                          double of_interest = std::numeric_limits<double>::infinity(), const GemmMisses& missed = {});

}  // namespace ridgeline

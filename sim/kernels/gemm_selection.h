// Which tile and split a library picks for a matrix product: of the menu's entries about as fast as the fastest, the
// one that the libraries' habits favour.
//
// The library's heuristics are tuned to be close to the best, and several tiles usually tie within 1 to 2 %: this
// predicts time well, whether k is split in 96 of 100 products, tile and split in half of them. Do not read more into
// the choice than its time.
#pragma once

#include <limits>

#include "sim/kernels/tile_menu.h"
#include "sim/workload/op.h"

namespace ridgeline {

struct GemmSelection {
  GemmTile tile;
  GemmWork::Family family = GemmWork::Family::simt;
  const TileChoice* choice = nullptr;
  int splits = 1;
  double fastest = 0;  ///< seconds of the fastest candidate
  double seconds = 0;  ///< product with its memset or split reduction
  /// The same, expected over the kernels that the library may take instead.
  double expected = 0;
  bool clears_counter = false;
};

/// Family, alignment and shape of the kernel class that multiplies these operands on this GPU; its tile is not chosen
/// yet. Types without a tensor-core path (bf16 before Ampere, fp32) run on the CUDA cores. Throws std::invalid_argument
/// where an operand cannot be 2:4 sparse.
GemmWork gemm_problem(const Matmul& op, const Gpu& gpu);

/// `problem` states family, type, shape, layout and alignment; its tile is ignored. The choice points into `menus`.
GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu, const GpuMenus& menus);
/// From one menu alone, and only where a candidate is faster than `of_interest` seconds: else the choice is null.
GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu, const GemmConstants& constants, const GpuMenu& menu,
                          double of_interest = std::numeric_limits<double>::infinity());

}  // namespace ridgeline

// The tiles the libraries' matrix-product kernels come in, one menu a class of kernels. Read from kernel names in
// profiles.
#pragma once

#include <span>

#include "sim/timing/gemm_law.h"

namespace ridgeline {

/// A tile and what its kernel asks of an SM.
struct TileChoice {
  GemmTile tile;
  int threads = 256, registers = 128;
  int shared_bytes = 0;
  double log_aspect = 0, log_area = 0, log_deep = 0;  ///< of the tile, for the library's preferences
};

/// Menu of a class on an architecture (some classes exist in several generations of kernels); `batched` products have
/// fewer kernels on some. Static storage.
std::span<const TileChoice> tile_menu(GemmClass kernel_class, Architecture architecture, bool batched = false);

}  // namespace ridgeline

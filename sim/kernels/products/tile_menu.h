// The tiles the libraries' matrix-product kernels come in, one menu a class of kernels. Read from kernel names in
// profiles; a hardware file may change them (sim/hardware/gemm_menu.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/hardware/chip_shape.h"
#include "sim/timing/products/gemm_floor.h"

namespace ridgeline {

/// How a kernel runs: with k in one piece, with splits of it that a second kernel adds up, with splits that it adds up
/// itself (tf32 wgmma: shared k-steps), or on a batch.
enum class Mode : std::uint8_t { whole, second_kernel, in_place, batched };

/// Layouts that a kernel runs in each mode: 1 neither operand transposed, 2 B, 4 A (or both); the sum of what it runs.
struct Runs {
  std::array<std::uint8_t, 4> layouts{7, 7, 7, 7};
  /// `layout`: as in GemmWork.
  [[nodiscard]] bool has(Mode mode, int layout) const {
    return ((layouts[static_cast<std::size_t>(mode)] >> std::min(layout, 2)) & 1) != 0;
  }
};

/// A tile and what its kernel asks of an SM.
struct TileChoice {
  GemmTile tile;
  int threads = 256, registers = 128;
  int shared_bytes = 0;
  Runs runs{};
  bool compiled_for_chip = true;  ///< by its library; false: as a hardware file describes it, on any chip
  double log_aspect = 0, log_area = 0, log_deep = 0;  ///< of the tile, for the library's preferences
  int recorded_splits = 0;  ///< of a menu made of what a recording names: as many, and no others; 0: any
};

/// Menu of a class on an architecture (some classes exist in several generations of kernels); `batched` products have
/// fewer kernels on some. Static storage.
std::span<const TileChoice> tile_menu(GemmClass kernel_class, Architecture architecture, bool batched = false);

/// A menu as one GPU has it: the entries that fit an SM, with the blocks it holds of each and what bounds them.
struct GpuMenu {
  static constexpr std::size_t kMostEntries = 160, kMostLengths = 256;
  std::vector<TileChoice> entries;
  GemmTileShapes shapes;  ///< of the entries
  /// The lengths that occur among the entries' sides and among their k-steps, filled up to groups of four, and where
  /// each entry's stand (as filled up).
  std::vector<float> sides, depths;
  struct Place {
    std::uint16_t m = 0, n = 0, k = 0;
  };
  std::vector<Place> places;
  std::vector<float> weights;  ///< of each entry, for its rank: 1 + what speaks against the tile (filled up)
  bool with_stream_k = false;
  bool often_others =
      false;             ///< what the library takes instead of the fastest is known: on architectures profiled here
  bool changed = false;  ///< by the hardware file
};

/// The entries that fit an SM of the GPU: a kernel whose stages do not fit runs with fewer, two at least. Throws
/// std::invalid_argument when the menu has more entries or lengths than are foreseen.
GpuMenu menu_on(const ChipShape& chip, std::span<const TileChoice> entries, GemmClass kernel_class);
/// With preferences other than those of the class.
GpuMenu menu_on(const ChipShape& chip, std::span<const TileChoice> entries, GemmClass kernel_class,
                const GemmConstants& constants);

/// The menus of all chips of one shape, made once. Immutable.
class GpuMenus {
 public:
  explicit GpuMenus(const ChipShape& chip);
  /// One kernel alone, with nothing that speaks against it.
  GpuMenus(const ChipShape& chip, GemmClass kernel_class, const TileChoice& only);
  [[nodiscard]] const GpuMenu& of(GemmClass kernel_class, bool batched) const {
    return kernel_class == GemmClass::simt && batched ? simt_batched_ : menus_[static_cast<std::size_t>(kernel_class)];
  }

 private:
  std::array<GpuMenu, kGemmClassNames.size()> menus_;
  GpuMenu simt_batched_;  ///< the only class whose batched kernels differ
};

}  // namespace ridgeline

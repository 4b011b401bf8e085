// Kernels of a matrix library as a hardware file may list them: what a what-if adds to the menus that the laws know.
//
// gemm:
//   menu: {value: extend, source: ...}           # or replace: drops the known entries of the classes listed
//   tiles:
//     value:
//       - {kernels: wgmma-16bit, m: 256, n: 192, k: 64, stages: 4}
//     source: ...
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace ridgeline {

/// Kernels that share a code path, and so the constants of the law (sim/timing/products/gemm_constants.h).
enum class GemmClass : std::uint8_t {
  tcgen05_half,      ///< Blackwell, 16-bit, aligned as Hopper's: sums in tensor memory, pairs of SMs
  wgmma_half,        ///< Hopper, 16-bit, all leading dimensions multiples of 16 bytes: persistent, TMA
  wgmma_tf32,        ///< the same for tf32
  wgmma_promoted,    ///< fp8 whose sums are added up in fp32 on the CUDA cores; other sums of fp8: wgmma_half
  wgmma_row_scaled,  ///< fp8 with scales of rows
  mma_half,          ///< 16-bit on an A100 (compute capability 8.0): cp.async, mma.sync
  mma_half_narrow,   ///< the same on compute capability 8.6 and 8.9 (and 12.x): SMs with 100 KB of shared memory
  mma_half_staged,   ///< 16-bit on Volta and Turing: operands staged through registers
  mma_half_align4,   ///< 16-bit, leading dimensions multiples of 4 or 8 bytes only
  mma_half_align2,   ///< 16-bit, odd leading dimensions: no asynchronous copies
  mma_tf32,          ///< tf32 before Hopper
  mma_tf32_align4,   ///< tf32, odd leading dimensions
  simt               ///< fp32 on the CUDA cores
};
inline constexpr std::array<std::pair<std::string_view, GemmClass>, 13> kGemmClassNames{
    {{"tcgen05-16bit", GemmClass::tcgen05_half},
     {"wgmma-16bit", GemmClass::wgmma_half},
     {"wgmma-tf32", GemmClass::wgmma_tf32},
     {"wgmma-fp8-promoted", GemmClass::wgmma_promoted},
     {"wgmma-fp8-rows", GemmClass::wgmma_row_scaled},
     {"mma-16bit", GemmClass::mma_half},
     {"mma-16bit-narrow", GemmClass::mma_half_narrow},
     {"mma-16bit-staged", GemmClass::mma_half_staged},
     {"mma-16bit-align4", GemmClass::mma_half_align4},
     {"mma-16bit-align2", GemmClass::mma_half_align2},
     {"mma-tf32", GemmClass::mma_tf32},
     {"mma-tf32-align4", GemmClass::mma_tf32_align4},
     {"cuda-cores", GemmClass::simt}}};

/// One kernel: a block computes m x n of the result, k at a time, `stages` buffers of both operands ahead.
struct GemmTileEntry {
  GemmClass kernels = GemmClass::wgmma_half;
  int m = 0, n = 0, k = 0, stages = 0;
  int warps = 0, registers = 0;  ///< of a block; of a thread
  int shared_bytes = 0;          ///< of a block
  bool operator==(const GemmTileEntry&) const = default;
};

/// Whether an entry for the kernels `given` is one of a class: those of mma.sync for 16 bits are one kind to users.
constexpr bool is_entry_of(GemmClass given, GemmClass kernels) {
  return given == kernels || (given == GemmClass::mma_half && kernels == GemmClass::mma_half_narrow);
}

struct GemmMenuChange {
  bool replace = false;  ///< the listed entries stand instead of the known ones of their class, not beside them
  std::vector<GemmTileEntry> tiles;
  /// Whether the menu of a class is no longer the one that the laws know.
  [[nodiscard]] bool concerns(GemmClass kernels) const {
    for (const GemmTileEntry& tile : tiles)
      if (is_entry_of(tile.kernels, kernels)) return true;
    return false;
  }
  bool operator==(const GemmMenuChange&) const = default;
};

}  // namespace ridgeline

#include "sim/hardware/describe_gemm_menu.h"

#include <fmt/format.h>

namespace ridgeline {
namespace {

constexpr std::array<std::pair<std::string_view, bool>, 2> kMenuWays{{{"extend", false}, {"replace", true}}};
constexpr std::size_t kMostTiles = 64;

bool is_persistent(GemmClass kernels) {
  return kernels == GemmClass::tcgen05_half || kernels == GemmClass::wgmma_half || kernels == GemmClass::wgmma_tf32 ||
         kernels == GemmClass::wgmma_promoted || kernels == GemmClass::wgmma_row_scaled;
}

int element_bytes(GemmClass kernels) {
  switch (kernels) {
    case GemmClass::tcgen05_half:
    case GemmClass::wgmma_half:
    case GemmClass::wgmma_promoted:
    case GemmClass::wgmma_row_scaled:
    case GemmClass::mma_half:
    case GemmClass::mma_half_narrow:
    case GemmClass::mma_half_staged:
    case GemmClass::mma_half_align4:
    case GemmClass::mma_half_align2: return 2;
    case GemmClass::wgmma_tf32:
    case GemmClass::mma_tf32:
    case GemmClass::mma_tf32_align4:
    case GemmClass::simt: return 4;
  }
  return 4;
}

/// Sides and k-steps come in eights: the smallest piece that a tensor-core instruction takes.
int multiple_of_eight(const config::Value& value, std::int64_t most) {
  const std::int64_t length = value.integer({8, most});
  if (length % 8 != 0) value.fail(fmt::format("{} is not a multiple of 8", length));
  return static_cast<int>(length);
}

GemmTileEntry read_tile(const config::Value& value, const SmSpec& sm) {
  const config::Mapping tile(value, {"kernels", "m", "n", "k", "stages", "warps", "registers", "shared_memory"});
  GemmTileEntry entry;
  entry.kernels = tile["kernels"].choice<GemmClass>(kGemmClassNames);
  const bool persistent = is_persistent(entry.kernels);
  if (persistent && !(sm.warpgroup_mma && sm.tensor_memory_accelerator))
    tile["kernels"].fail("this chip has no wgmma or no TMA (sm.warpgroup_mma, sm.tensor_memory_accelerator)");
  if (entry.kernels == GemmClass::tcgen05_half && !sm.tensor_memory)
    tile["kernels"].fail("this chip has no tcgen05 (sm.tensor_memory)");
  entry.m = multiple_of_eight(tile["m"], 1024);
  entry.n = multiple_of_eight(tile["n"], 1024);
  if (persistent && entry.m % 64 != 0 && entry.n % 64 != 0)
    tile["m"].fail(fmt::format("neither m {} nor n {} is a multiple of 64, as wgmma takes one side", entry.m, entry.n));
  entry.k = multiple_of_eight(tile["k"], 1024);
  entry.stages = static_cast<int>(tile["stages"].integer({1, 64}));
  entry.warps = static_cast<int>(tile["warps"].integer({1, sm.max_threads_per_block / 32}, persistent ? 12 : 8));
  entry.registers = static_cast<int>(tile["registers"].integer({16, 255}, 168));
  const int panels = (entry.m + entry.n) * entry.k * entry.stages * element_bytes(entry.kernels);
  const Bytes shared = tile["shared_memory"].quantity<Bytes>(config::Range::non_negative(), Bytes{1.0 * panels});
  if (shared > sm.shared_per_block)
    (tile.has("shared_memory") ? tile["shared_memory"] : tile["stages"])
        .fail(fmt::format("a block needs {:.0f} KiB of shared memory, and sm.shared_per_block is {:.0f} KiB",
                          shared.value() / 1024.0, sm.shared_per_block.value() / 1024.0));
  entry.shared_bytes = static_cast<int>(shared.value());
  if (32 * entry.warps * entry.registers > sm.registers)
    (tile.has("registers") ? tile["registers"] : value)
        .fail(fmt::format("{} warps of {} registers a thread need {} registers, and sm.registers is {}", entry.warps,
                          entry.registers, 32 * entry.warps * entry.registers, sm.registers));
  return entry;
}

}  // namespace

void read_gemm_menu_way(const config::Value& value, Gpu& gpu) { gpu.gemm.replace = value.choice<bool>(kMenuWays); }

void read_gemm_tiles(const config::Value& value, Gpu& gpu) {
  gpu.gemm.tiles.clear();
  for (const config::Value& item : value.list()) {
    if (gpu.gemm.tiles.size() == kMostTiles) item.fail(fmt::format("more than {} tiles", kMostTiles));
    gpu.gemm.tiles.push_back(read_tile(item, gpu.sm));
  }
}

}  // namespace ridgeline

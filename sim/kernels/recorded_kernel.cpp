#include "sim/kernels/recorded_kernel.h"

#include <algorithm>
#include <optional>

#include "sim/kernels/products/gemm_selection.h"

namespace ridgeline {
namespace {

using Instructions = LibraryKernel::Instructions;

std::optional<GemmWork::Family> family_of(const LibraryKernel& ran, const GemmWork& problem, const Gpu& gpu) {
  const bool tensor = problem.family != GemmWork::Family::simt;
  switch (ran.instructions) {
    case Instructions::wgmma:
      if (problem.family == GemmWork::Family::wgmma) return GemmWork::Family::wgmma;
      break;
    case Instructions::mma_sync:
      if (tensor) return GemmWork::Family::mma_sync;
      break;
    case Instructions::simt:
      if (gpu.sm.rates.fp32 > 0.0 && !is_half(problem.type)) return GemmWork::Family::simt;
      break;
    case Instructions::none: break;
  }
  return std::nullopt;
}

/// How many of depth and stages an entry of the menu shares with the name.
int likeness(const TileChoice& entry, const LibraryKernel& ran) {
  return (entry.tile.k == ran.k ? 2 : 0) + (entry.tile.stages == ran.stages ? 1 : 0);
}

/// Results a thread keeps in its registers, and registers besides, of tiles that no menu has (CUTLASS's kernels).
constexpr std::int64_t kMostResults = 128, kBesides = 64, kRegistersOfUnlisted = 254, kLeastThreads = 64,
                       kMostThreads = 256;

TileChoice unlisted(const LibraryKernel& ran, const GemmWork& problem) {
  const bool simt = problem.family == GemmWork::Family::simt;
  const std::int64_t element = bytes_of(problem.type), results = ran.m * ran.n;
  const std::int64_t usual_depth = simt ? 8 : 64 / element, usual_stages = 3;
  GemmWork work = problem;
  work.tile_m = static_cast<int>(ran.m);
  work.tile_n = static_cast<int>(ran.n);
  work.tile_k = static_cast<int>(ran.k > 0 ? ran.k : usual_depth);
  work.stages = static_cast<int>(ran.stages > 0 ? ran.stages : usual_stages);
  work.first_stages = work.stages;
  TileChoice choice{.tile = tile_of(work)};
  std::int64_t threads = kLeastThreads;
  while (threads < kMostThreads && results / threads > (simt ? kMostResults / 2 : kMostResults)) threads *= 2;
  choice.threads = static_cast<int>(threads);
  choice.registers = static_cast<int>(std::min(kRegistersOfUnlisted, results / threads + kBesides));
  choice.shared_bytes = static_cast<int>((ran.m + ran.n) * work.tile_k * work.stages * element);
  if (problem.family == GemmWork::Family::wgmma) {
    constexpr int kThreads = 384, kRegisters = 168, kBarriers = 4096;  // as the menus' TMA kernels
    choice.threads = kThreads;
    choice.registers = kRegisters;
    choice.shared_bytes += kBarriers;
  }
  return choice;
}

/// Where more is said than that k is one piece, the name having no second kernel: as many as the panels allow.
int splits_that_ran(const LibraryKernel& ran, const GemmWork& problem) {
  constexpr std::int64_t kShortestPiece = 8;
  if (ran.splits < 1 || ran.splits > std::max<std::int64_t>(1, problem.k / kShortestPiece)) return 0;
  return ran.summed && ran.splits == 1 ? 0 : static_cast<int>(ran.splits);
}

/// The menu's entry of these sides that shares most with the name, else one made of the name.
TileChoice choice_of(const LibraryKernel& ran, const GemmWork& problem, const Gpu& gpu, GemmClass kernel_class) {
  const TileChoice* best = nullptr;
  for (const TileChoice& entry : tile_menu(kernel_class, gpu.architecture, problem.batch > 1)) {
    if (entry.tile.m != ran.m || entry.tile.n != ran.n || entry.tile.stream_k) continue;
    if (best == nullptr || likeness(entry, ran) > likeness(*best, ran)) best = &entry;
  }
  const bool depth_differs = best != nullptr && ran.k > 0 && best->tile.k != ran.k;
  TileChoice choice = best != nullptr && !depth_differs ? *best : unlisted(ran, problem);
  constexpr std::uint8_t kAll = 7;
  // Splits that the kernel adds up itself are not in its name: whichever is faster.
  choice.runs = ran.summed ? Runs{{0, kAll, 0, kAll}} : Runs{{kAll, 0, kAll, kAll}};
  if (problem.family != GemmWork::Family::wgmma && problem.batch == 1)
    choice.recorded_splits = splits_that_ran(ran, problem);
  return choice;
}

/// Whether a library could have such a kernel: recordings may say anything. 0 for depth and stages: not said.
bool is_possible(const LibraryKernel& ran) {
  constexpr std::int64_t kSide = 8, kLargest = 512, kMostStages = 64;
  const auto is_side = [](std::int64_t side) { return side >= kSide && side <= kLargest && side % kSide == 0; };
  return is_side(ran.m) && is_side(ran.n) && ran.k >= 0 && ran.k <= kLargest && ran.stages >= 0 &&
         ran.stages <= kMostStages;
}

}  // namespace

std::shared_ptr<const GpuMenus> menu_of_recorded(const LibraryKernel& ran, GemmWork& problem, const Gpu& gpu) {
  if (!is_possible(ran) || !gpu.gemm.tiles.empty()) return nullptr;
  const auto family = family_of(ran, problem, gpu);
  if (!family) return nullptr;
  GemmWork work = problem;
  work.family = *family;
  const GemmClass kernel_class = gemm_class_of(work, gpu);
  auto menus = std::make_shared<const GpuMenus>(gpu, kernel_class, choice_of(ran, work, gpu, kernel_class));
  if (select_gemm(work, gpu, *menus).choice == nullptr) return nullptr;
  problem = work;
  return menus;
}

}  // namespace ridgeline

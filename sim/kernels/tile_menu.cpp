#include "sim/kernels/tile_menu.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/occupancy/occupancy.h"

namespace ridgeline {
namespace {

using Menu = std::vector<TileChoice>;

struct Entry {
  int m, n, k, stages, threads, registers;
};

TileChoice with_logarithms(TileChoice choice) {
  const double m = choice.tile.m, n = choice.tile.n;
  choice.log_aspect = std::abs(std::log(m / n));
  choice.log_area = std::log(m * n / (128.0 * 128.0));
  choice.log_deep = std::log(choice.tile.k / 32.0);
  return choice;
}

TileChoice choice_of(const GemmTileEntry& given) {
  GemmWork work{.tile_m = given.m, .tile_n = given.n, .tile_k = given.k, .stages = given.stages};
  if (given.kernels == GemmClass::wgmma_half || given.kernels == GemmClass::wgmma_tf32)
    work.family = GemmWork::Family::wgmma;
  return with_logarithms({.tile = tile_of(work),
                          .threads = 32 * given.warps,
                          .registers = given.registers,
                          .shared_bytes = given.shared_bytes});
}

/// `stages` buffers of both operand panels in shared memory; every shape also exists turned round.
Menu menu_of(std::initializer_list<Entry> entries, int element) {
  Menu menu;
  for (const Entry& e : entries)
    for (int way = 0; way < (e.m == e.n ? 1 : 2); ++way) {
      const int m = way == 0 ? e.m : e.n, n = way == 0 ? e.n : e.m;
      menu.push_back(with_logarithms({.tile = {.m = m, .n = n, .k = e.k, .stages = e.stages},
                                      .threads = e.threads,
                                      .registers = e.registers,
                                      .shared_bytes = (m + n) * e.k * e.stages * element}));
    }
  return menu;
}

/// Hopper's TMA kernels come in more than sixty shapes, one side a multiple of 64, the other of 8. A coarse grid of
/// sides predicts time as well as all of them: neighbours tie within 1 to 2 %.
Menu wgmma_menu(int k, int element, std::initializer_list<int> sides, int largest_area, int most_stages,
                bool with_stream_k) {
  constexpr int kSharedForStages = 215000;
  Menu menu;
  for (const int m : sides)
    for (const int n : sides) {
      if ((m % 64 != 0 && n % 64 != 0) || m * n > largest_area) continue;
      const int stages = std::min(most_stages, kSharedForStages / ((m + n) * k * element));
      GemmWork work{.family = GemmWork::Family::wgmma, .tile_m = m, .tile_n = n, .tile_k = k, .stages = stages};
      GemmTile tile = tile_of(work);
      if (tile.wgmma_m >= 192 && tile.wgmma_n < 64) continue;
      menu.push_back(with_logarithms(
          {.tile = tile, .threads = 384, .registers = 168, .shared_bytes = (m + n) * k * element * stages + 4096}));
      if (!with_stream_k) continue;
      menu.push_back(menu.back());
      menu.back().tile.stream_k = true;
    }
  return menu;
}

// m, n, k, stages, threads, registers. Ampere's and Hopper's entries from profiles on an H200, Volta's and Turing's
// from kernel names published for them (volta_s884gemm, turing_s1688gemm: operands staged through registers, two
// buffers).
const std::initializer_list<Entry> kAmpereHalf{{256, 128, 32, 3, 256, 220},
                                               {128, 128, 32, 5, 128, 226},
                                               {256, 64, 32, 4, 128, 228},
                                               {128, 64, 32, 6, 128, 142},
                                               {64, 64, 64, 5, 128, 110}};
const std::initializer_list<Entry> kTwoBuffers{{256, 128, 32, 2, 256, 226},
                                               {128, 128, 32, 2, 128, 226},
                                               {256, 64, 32, 2, 128, 226},
                                               {128, 64, 32, 2, 128, 140},
                                               {64, 64, 32, 2, 128, 96}};
const std::initializer_list<Entry> kHalfAlign4{
    {256, 128, 64, 3, 256, 226}, {256, 128, 32, 3, 256, 220}, {128, 128, 64, 3, 128, 236},
    {128, 128, 32, 4, 128, 222}, {256, 64, 64, 3, 128, 232},  {256, 64, 32, 4, 128, 230},
    {128, 64, 64, 3, 128, 156},  {128, 64, 32, 6, 128, 142},  {64, 64, 32, 6, 128, 90}};
const std::initializer_list<Entry> kHalfAlign2{
    {256, 128, 32, 2, 256, 229}, {128, 128, 32, 2, 128, 252}, {64, 64, 32, 2, 128, 96}};
const std::initializer_list<Entry> kTf32{
    {256, 128, 32, 3, 256, 225}, {256, 128, 16, 3, 256, 216}, {128, 128, 32, 3, 128, 228}, {128, 128, 16, 4, 128, 218},
    {256, 64, 32, 4, 128, 230},  {256, 64, 16, 4, 128, 218},  {128, 64, 32, 3, 128, 168},  {128, 64, 32, 6, 128, 168},
    {128, 64, 16, 6, 128, 136},  {64, 64, 32, 6, 128, 92},    {64, 64, 16, 6, 128, 88}};
const std::initializer_list<Entry> kTf32Align4{{256, 128, 32, 3, 256, 225},
                                               {128, 128, 32, 3, 128, 228},
                                               {256, 64, 32, 3, 128, 230},
                                               {128, 64, 32, 3, 128, 168},
                                               {64, 64, 32, 6, 128, 100}};
const std::initializer_list<Entry> kSimt{
    {256, 128, 8, 4, 256, 202}, {128, 128, 8, 4, 128, 202}, {128, 64, 8, 5, 128, 128}, {64, 64, 8, 5, 128, 76},
    {128, 128, 8, 3, 128, 254}, {256, 64, 8, 3, 128, 254},  {128, 64, 8, 3, 128, 210}, {64, 64, 8, 3, 128, 121},
    {128, 32, 8, 3, 128, 122},  {64, 32, 8, 3, 64, 121},    {32, 32, 8, 3, 64, 80}};
const std::initializer_list<Entry> kSimtTwoBuffers{{128, 128, 8, 2, 256, 122},
                                                   {128, 64, 8, 2, 128, 122},
                                                   {64, 64, 8, 2, 64, 122},
                                                   {128, 32, 8, 2, 128, 84},
                                                   {32, 32, 8, 2, 64, 80}};

}  // namespace

std::span<const TileChoice> tile_menu(GemmClass kernel_class, Architecture architecture, bool batched) {
  static const Menu wgmma_half =
      wgmma_menu(64, 2, {384, 320, 256, 192, 160, 128, 96, 80, 64, 32, 16}, 40960, 16, false);
  static const Menu wgmma_tf32 = wgmma_menu(32, 4, {256, 128, 64}, 32768, 8, true);
  static const Menu ampere_half = menu_of(kAmpereHalf, 2), volta_half = menu_of(kTwoBuffers, 2),
                    align4 = menu_of(kHalfAlign4, 2), align2 = menu_of(kHalfAlign2, 2);
  static const Menu tf32 = menu_of(kTf32, 4), tf32_align4 = menu_of(kTf32Align4, 4), simt = menu_of(kSimt, 4),
                    simt_narrow = menu_of(kSimtTwoBuffers, 4), simt_batched = menu_of({{128, 128, 8, 3, 256, 122}}, 4);
  const bool before_ampere = architecture == Architecture::volta || architecture == Architecture::turing;
  switch (kernel_class) {
    case GemmClass::wgmma_half: return wgmma_half;
    case GemmClass::wgmma_tf32: return wgmma_tf32;
    case GemmClass::mma_half: return ampere_half;
    case GemmClass::mma_half_staged: return volta_half;
    case GemmClass::mma_half_align4: return before_ampere ? volta_half : align4;
    case GemmClass::mma_half_align2: return align2;
    case GemmClass::mma_tf32: return tf32;
    case GemmClass::mma_tf32_align4: return tf32_align4;
    case GemmClass::simt:
      // Batched fp32 products on Ampere all ran ampere_sgemm_128x128 (138 kernel names of an A100 in the NeuSight
      // data).
      if (batched && architecture == Architecture::ampere) return simt_batched;
      return before_ampere ? simt_narrow : simt;
  }
  return simt;
}

GpuMenu menu_on(const Gpu& gpu, std::span<const TileChoice> entries) {
  GpuMenu menu;
  const auto place_of = [&menu](double length) {
    const auto found = std::find(menu.lengths.begin(), menu.lengths.end(), length);
    const auto place = static_cast<std::size_t>(found - menu.lengths.begin());
    if (found == menu.lengths.end()) menu.lengths.push_back(length);
    if (place >= GpuMenu::kMostLengths)
      throw std::invalid_argument("a menu of matrix-product kernels has more than 256 different lengths");
    return static_cast<std::uint8_t>(place);
  };
  if (entries.size() > GpuMenu::kMostEntries)
    throw std::invalid_argument(fmt::format("a menu of matrix-product kernels of {} entries, at most {} are foreseen",
                                            entries.size(), GpuMenu::kMostEntries));
  for (const TileChoice& entry : entries) {
    TileChoice choice = entry;
    // Persistent kernels are one block an SM whatever they ask of it.
    if (choice.tile.wgmma_m == 0) {
      choice.tile.blocks_per_sm = occupancy_of(gpu.sm, choice.threads, choice.registers, choice.shared_bytes).blocks;
      if (choice.tile.blocks_per_sm == 0) continue;
    }
    menu.entries.push_back(choice);
    menu.with_stream_k = menu.with_stream_k || choice.tile.stream_k;
    menu.shapes.push_back(choice.tile);
    menu.places.push_back({place_of(choice.tile.m), place_of(choice.tile.n), place_of(choice.tile.k)});
  }
  return menu;
}

namespace {

GpuMenu menu_of_class(const Gpu& gpu, GemmClass kernel_class, bool batched) {
  const auto known = tile_menu(kernel_class, gpu.architecture, batched);
  const bool changed = gpu.gemm.concerns(kernel_class);
  if (!changed) return menu_on(gpu, known);
  std::vector<TileChoice> entries;
  if (!gpu.gemm.replace) entries.assign(known.begin(), known.end());
  for (const GemmTileEntry& given : gpu.gemm.tiles)
    if (given.kernels == kernel_class) entries.push_back(choice_of(given));
  GpuMenu menu = menu_on(gpu, entries);
  menu.changed = true;
  return menu;
}

}  // namespace

GpuMenus::GpuMenus(const Gpu& gpu) {
  for (const auto& [name, kernel_class] : kGemmClassNames)
    menus_[static_cast<std::size_t>(kernel_class)] = menu_of_class(gpu, kernel_class, false);
  simt_batched_ = menu_of_class(gpu, GemmClass::simt, true);
}

}  // namespace ridgeline

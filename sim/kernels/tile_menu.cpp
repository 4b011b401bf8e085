#include "sim/kernels/tile_menu.h"

#include <algorithm>
#include <vector>

namespace ridgeline {
namespace {

using Menu = std::vector<TileChoice>;

/// Registers of a kernel whose accumulators take m·n/threads of them, besides addresses and fragments.
int registers_for(int m, int n, int threads) { return std::min(255, m * n / threads + 64 + (m * n / threads >= 64 ? 40 : 16)); }

/// cp.async kernels: `stages` buffers of both operand panels in shared memory.
TileChoice tensor_tile(int m, int n, int k, int stages, int element) {
  const int warps = std::clamp(m * n / 4096, 2, 8), threads = warps * 32;
  return {.tile = {.m = m, .n = n, .k = k, .stages = stages}, .threads = threads, .registers = registers_for(m, n, threads), .shared_bytes = (m + n) * k * stages * element};
}

void add_both_ways(Menu& menu, int a, int b, int k, int stages, int element) {
  menu.push_back(tensor_tile(a, b, k, stages, element));
  if (a != b) menu.push_back(tensor_tile(b, a, k, stages, element));
}

/// Hopper's TMA kernels come in more than sixty shapes, one side a multiple of 64, the other of 8. A coarse grid of sides
/// predicts time as well as all of them: neighbours tie within 1 to 2 %.
Menu wgmma_menu(int k, int element, std::initializer_list<int> sides, int largest_area, int most_stages) {
  constexpr int kSharedForStages = 215000;
  Menu menu;
  for (const int m : sides)
    for (const int n : sides) {
      if ((m % 64 != 0 && n % 64 != 0) || m * n > largest_area) continue;
      const int stages = std::min(most_stages, kSharedForStages / ((m + n) * k * element));
      GemmWork work{.family = GemmWork::Family::wgmma, .tile_m = m, .tile_n = n, .tile_k = k, .stages = stages};
      GemmTile tile = tile_of(work);
      if (tile.wgmma_m >= 192 && tile.wgmma_n < 64) continue;
      menu.push_back({.tile = tile, .threads = 384, .registers = 168, .shared_bytes = (m + n) * k * element * stages + 4096});
    }
  return menu;
}

Menu ampere_half_menu() {
  Menu menu;
  add_both_ways(menu, 256, 128, 32, 3, 2);
  add_both_ways(menu, 128, 128, 32, 5, 2);
  add_both_ways(menu, 256, 64, 32, 4, 2);
  add_both_ways(menu, 128, 64, 32, 6, 2);
  add_both_ways(menu, 64, 64, 64, 5, 2);
  return menu;
}
Menu volta_half_menu() {   // s884 and s1688: operands staged through registers, two buffers
  Menu menu;
  add_both_ways(menu, 256, 128, 32, 2, 2);
  add_both_ways(menu, 128, 128, 32, 2, 2);
  add_both_ways(menu, 256, 64, 32, 2, 2);
  add_both_ways(menu, 128, 64, 32, 2, 2);
  add_both_ways(menu, 64, 64, 32, 2, 2);
  return menu;
}
Menu align4_menu() {
  Menu menu;
  add_both_ways(menu, 256, 128, 64, 3, 2);
  add_both_ways(menu, 128, 128, 32, 4, 2);
  add_both_ways(menu, 256, 64, 64, 3, 2);
  add_both_ways(menu, 64, 64, 64, 6, 2);
  return menu;
}
Menu align2_menu() {
  Menu menu;
  add_both_ways(menu, 256, 128, 32, 2, 2);
  add_both_ways(menu, 128, 128, 32, 2, 2);
  add_both_ways(menu, 64, 64, 32, 2, 2);
  return menu;
}
Menu tf32_menu() {
  Menu menu;
  add_both_ways(menu, 256, 128, 16, 3, 4);
  add_both_ways(menu, 128, 128, 16, 5, 4);
  add_both_ways(menu, 256, 64, 16, 4, 4);
  add_both_ways(menu, 128, 64, 16, 6, 4);
  add_both_ways(menu, 64, 64, 32, 5, 4);
  return menu;
}
Menu tf32_align4_menu() {
  Menu menu;
  add_both_ways(menu, 256, 128, 32, 3, 4);
  add_both_ways(menu, 128, 128, 32, 3, 4);
  add_both_ways(menu, 256, 64, 32, 3, 4);
  add_both_ways(menu, 128, 64, 32, 3, 4);
  return menu;
}
/// SIMT kernels; blocks an SM: 1 of the largest, then 2, 4, 8 as the accumulators shrink.
Menu simt_menu(bool wide) {
  Menu menu;
  const auto add = [&menu](int m, int n, int stages, int registers) {
    const int threads = std::clamp(m * n / 64, 64, 256);
    for (int way = 0; way < (m == n ? 1 : 2); ++way) {
      const int a = way == 0 ? m : n, b = way == 0 ? n : m;
      menu.push_back({.tile = {.m = a, .n = b, .k = 8, .stages = stages}, .threads = threads, .registers = registers, .shared_bytes = (a + b) * 8 * stages * 4});
    }
  };
  if (wide) add(256, 128, 4, 220);
  add(128, 128, 3, 126);
  add(256, 64, 3, 126);
  add(128, 64, 3, 126);
  add(64, 64, 3, 100);
  add(128, 32, 3, 100);
  add(64, 32, 3, 80);
  add(32, 32, 3, 80);
  return menu;
}

}  // namespace

std::span<const TileChoice> tile_menu(GemmClass kernel_class, Architecture architecture) {
  static const Menu wgmma_half = wgmma_menu(64, 2, {16, 32, 64, 96, 128, 192, 256}, 40960, 16);
  static const Menu wgmma_tf32 = wgmma_menu(32, 4, {32, 64, 128, 256}, 32768, 8);
  static const Menu ampere_half = ampere_half_menu(), volta_half = volta_half_menu(), align4 = align4_menu(), align2 = align2_menu();
  static const Menu tf32 = tf32_menu(), tf32_align4 = tf32_align4_menu(), simt = simt_menu(true), simt_narrow = simt_menu(false);
  const bool before_ampere = architecture == Architecture::volta || architecture == Architecture::turing;
  switch (kernel_class) {
    case GemmClass::wgmma_half: return wgmma_half;
    case GemmClass::wgmma_tf32: return wgmma_tf32;
    case GemmClass::mma_half: return before_ampere ? volta_half : ampere_half;
    case GemmClass::mma_half_align4: return before_ampere ? volta_half : align4;
    case GemmClass::mma_half_align2: return align2;
    case GemmClass::mma_tf32: return tf32;
    case GemmClass::mma_tf32_align4: return tf32_align4;
    case GemmClass::simt: return before_ampere ? simt_narrow : simt;
  }
  return simt;
}

}  // namespace ridgeline

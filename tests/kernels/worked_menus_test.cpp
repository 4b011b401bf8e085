// Menus of matrix-product kernels worked out by hand: what each class holds on each generation, and what a chip with
// less shared memory, fewer registers or shorter blocks makes of a kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "sim/kernels/products/gemm_candidates.h"
#include "sim/kernels/products/tile_menu.h"
#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_menus {
namespace {

using testing_support::made_up_chip;

std::string entry_text(const TileChoice& one) {
  return fmt::format("{}x{}x{}x{} {} threads {} registers {} bytes runs {}{}{}{}{}{}", one.tile.m, one.tile.n,
                     one.tile.k, one.tile.stages, one.threads, one.registers, one.shared_bytes, one.runs.layouts[0],
                     one.runs.layouts[1], one.runs.layouts[2], one.runs.layouts[3],
                     one.tile.stream_k ? " shares steps" : "",
                     one.tile.wgmma_m > 0 ? fmt::format(" wgmma {}x{}", one.tile.wgmma_m, one.tile.wgmma_n) : "");
}
/// How many there are, the first, the second and the last.
std::string menu_text(GemmClass kernels, Architecture architecture, bool batched = false) {
  const auto menu = tile_menu(kernels, architecture, batched);
  return fmt::format("{}: {} | {} | {}", menu.size(), entry_text(menu.front()),
                     entry_text(menu[menu.size() > 1 ? 1 : 0]), entry_text(menu.back()));
}

// Of a table for the generations before Hopper every shape is there turned round too. Stages of both panels are in
// shared memory, (256 + 128) x 32 x 3 values of two bytes; TMA kernels have as many as 215,000 bytes hold, up to 16 of
// 16 bits and 8 of tf32, and 4,096 bytes besides.
// Of a pair's kernel an SM holds half of the panel of 256: (128 + 128) x 64 x 2 bytes a stage.
constexpr std::string_view
    kTcgen05Half =
        "55: 128x256x64x6 256 threads 168 registers 200704 bytes runs 7777 wgmma 128x256 | "
        "256x128x64x6 256 threads 168 registers 200704 bytes runs 7777 wgmma 128x256 | "
        "8x64x64x16 256 threads 168 registers 151552 bytes runs 7777 wgmma 64x8",
    kWgmmaHalf =
        "50: 256x160x64x4 384 threads 168 registers 217088 bytes runs 7707 wgmma 256x160 | "
        "160x256x64x4 384 threads 168 registers 217088 bytes runs 7707 wgmma 256x160 | "
        "8x64x64x16 384 threads 168 registers 151552 bytes runs 3303 wgmma 64x8",
    kWgmmaTf32 =
        "14: 256x128x32x4 384 threads 168 registers 200704 bytes runs 4040 wgmma 128x256 | "
        "256x128x32x4 384 threads 168 registers 200704 bytes runs 4040 shares steps wgmma 128x256 | "
        "64x64x32x8 384 threads 168 registers 135168 bytes runs 2031 shares steps wgmma 64x64",
    kPromoted =
        "30: 160x128x64x5 384 threads 168 registers 188416 bytes runs 7707 wgmma 128x160 | "
        "192x96x64x5 384 threads 168 registers 188416 bytes runs 7707 wgmma 192x96 | "
        "8x64x64x16 384 threads 168 registers 151552 bytes runs 3303 wgmma 64x8",
    kRowScaled =
        "1: 128x128x64x6 384 threads 168 registers 200704 bytes runs 7000 wgmma 128x128 | "
        "128x128x64x6 384 threads 168 registers 200704 bytes runs 7000 wgmma 128x128 | "
        "128x128x64x6 384 threads 168 registers 200704 bytes runs 7000 wgmma 128x128",
    kHalf =
        "8: 256x128x32x3 256 threads 220 registers 73728 bytes runs 7777 | "
        "128x256x32x3 256 threads 220 registers 73728 bytes runs 7777 | "
        "64x64x64x5 128 threads 110 registers 81920 bytes runs 7777",
    kStaged =
        "8: 256x128x32x2 256 threads 226 registers 49152 bytes runs 7777 | "
        "128x256x32x2 256 threads 226 registers 49152 bytes runs 7777 | "
        "64x64x32x2 128 threads 96 registers 16384 bytes runs 7777",
    kHopperAlign4 =
        "14: 256x128x64x3 256 threads 226 registers 147456 bytes runs 3773 | "
        "256x128x32x3 256 threads 222 registers 73728 bytes runs 7447 | "
        "64x64x32x6 128 threads 90 registers 49152 bytes runs 5505",
    kAlign4 =
        "15: 256x128x64x3 256 threads 226 registers 147456 bytes runs 7777 | "
        "128x256x64x3 256 threads 226 registers 147456 bytes runs 7777 | "
        "64x64x32x6 128 threads 90 registers 49152 bytes runs 7777",
    kHopperAlign2 =
        "5: 256x128x32x2 256 threads 226 registers 49152 bytes runs 4444 | "
        "128x256x32x2 256 threads 229 registers 49152 bytes runs 7777 | "
        "64x64x32x2 128 threads 96 registers 16384 bytes runs 7707",
    kAlign2 =
        "4: 256x128x32x2 256 threads 229 registers 49152 bytes runs 7777 | "
        "128x256x32x2 256 threads 229 registers 49152 bytes runs 7777 | "
        "64x64x32x2 128 threads 96 registers 16384 bytes runs 7777",
    kHopperTf32 =
        "18: 256x128x16x3 256 threads 214 registers 73728 bytes runs 4000 | "
        "256x64x32x4 128 threads 223 registers 163840 bytes runs 4400 | "
        "64x64x16x10 128 threads 88 registers 81920 bytes runs 0505",
    kTf32 =
        "18: 256x128x32x3 256 threads 225 registers 147456 bytes runs 7777 | "
        "128x256x32x3 256 threads 225 registers 147456 bytes runs 7777 | "
        "64x64x16x6 128 threads 88 registers 49152 bytes runs 7777",
    kHopperTf32Align4 =
        "17: 256x128x32x3 256 threads 223 registers 147456 bytes runs 7757 | "
        "128x256x32x3 256 threads 230 registers 147456 bytes runs 7737 | "
        "64x64x16x6 128 threads 89 registers 49152 bytes runs 1401",
    kTf32Align4 =
        "8: 256x128x32x3 256 threads 225 registers 147456 bytes runs 7777 | "
        "128x256x32x3 256 threads 225 registers 147456 bytes runs 7777 | "
        "64x64x32x6 128 threads 100 registers 98304 bytes runs 7777",
    kHopperSimt =
        "19: 256x128x8x3 256 threads 254 registers 36864 bytes runs 1110 | "
        "256x128x8x4 256 threads 202 registers 49152 bytes runs 0441 | "
        "32x32x8x3 64 threads 80 registers 6144 bytes runs 5207",
    kSimt =
        "17: 256x128x8x4 256 threads 202 registers 49152 bytes runs 5557 | "
        "128x256x8x4 256 threads 202 registers 49152 bytes runs 5557 | "
        "32x32x8x3 64 threads 80 registers 6144 bytes runs 7777",
    kNarrowSimt =
        "7: 128x128x8x2 256 threads 122 registers 16384 bytes runs 3337 | "
        "128x64x8x2 128 threads 122 registers 12288 bytes runs 7777 | "
        "32x32x8x2 64 threads 80 registers 4096 bytes runs 7777",
    kBatchedSimt =
        "1: 128x128x8x3 256 threads 122 registers 24576 bytes runs 7777 | "
        "128x128x8x3 256 threads 122 registers 24576 bytes runs 7777 | "
        "128x128x8x3 256 threads 122 registers 24576 bytes runs 7777";

TEST(WorkedMenus, every_class_holds_the_kernels_of_its_generation) {
  using enum Architecture;
  using enum GemmClass;
  for (const Architecture each : {volta, turing, ampere, ada, hopper, blackwell}) {
    EXPECT_EQ(menu_text(tcgen05_half, each), kTcgen05Half);
    EXPECT_EQ(menu_text(wgmma_half, each), kWgmmaHalf);
    EXPECT_EQ(menu_text(wgmma_tf32, each), kWgmmaTf32);
    EXPECT_EQ(menu_text(wgmma_promoted, each), kPromoted);
    EXPECT_EQ(menu_text(wgmma_row_scaled, each), kRowScaled);
    EXPECT_EQ(menu_text(mma_half, each), kHalf);
    EXPECT_EQ(menu_text(mma_half_narrow, each), kHalf);
    EXPECT_EQ(menu_text(mma_half_staged, each), kStaged);
    const bool newer = each == hopper || each == blackwell, older = each == volta || each == turing;
    EXPECT_EQ(menu_text(mma_half_align4, each), newer ? kHopperAlign4 : older ? kStaged : kAlign4);
    EXPECT_EQ(menu_text(mma_half_align2, each), newer ? kHopperAlign2 : kAlign2);
    EXPECT_EQ(menu_text(mma_tf32, each), newer ? kHopperTf32 : kTf32);
    EXPECT_EQ(menu_text(mma_tf32_align4, each), newer ? kHopperTf32Align4 : kTf32Align4);
    const std::string_view cores = newer ? kHopperSimt : older ? kNarrowSimt : kSimt;
    EXPECT_EQ(menu_text(simt, each), cores);
    EXPECT_EQ(menu_text(simt, each, true), newer || older ? cores : kBatchedSimt);
  }
}

TEST(WorkedMenus, preferences_go_by_the_logarithms_of_a_tile) {
  for (const TileChoice& one : tile_menu(GemmClass::mma_half_align4, Architecture::ampere)) {
    EXPECT_NEAR(one.log_aspect, std::abs(std::log(one.tile.m) - std::log(one.tile.n)), 1e-12);
    EXPECT_NEAR(one.log_area, std::log(one.tile.m) + std::log(one.tile.n) - 14.0 * std::log(2.0), 1e-12);
    EXPECT_NEAR(one.log_deep, one.tile.k == 64 ? std::log(2.0) : 0.0, 1e-12);
    GemmConstants constants{};
    constants.rank_aspect = 3.0, constants.rank_area = 5.0, constants.rank_deep = 7.0, constants.rank_wide = 11.0;
    EXPECT_NEAR(dislike_of_tile(one, constants),
                3.0 * one.log_aspect + 5.0 * one.log_area + 7.0 * one.log_deep +
                    (one.tile.m == 256 || one.tile.n == 256 ? 11.0 : 0.0),
                1e-12);
  }
  GemmConstants constants{};
  constants.rank_stream = 2.0, constants.rank_split = 3.0, constants.rank_log_split = 5.0,
  constants.rank_in_place = 7.0;
  EXPECT_EQ(dislike_of_splits(1, false, constants), 0.0);
  EXPECT_EQ(dislike_of_splits(1, true, constants), 2.0);
  EXPECT_NEAR(dislike_of_splits(6, false, constants), 3.0 + 5.0 * std::log(6.0), 1e-12);
  EXPECT_NEAR(dislike_of_splits(64, true, constants), 10.0 + 5.0 * std::log(64.0), 1e-12);
}

GemmWork split_problem(GemmWork::Family family, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.family = family, .m = m, .n = n, .k = k};
}
TEST(WorkedMenus, products_are_split_where_they_are_long_and_fill_no_more_than_three_rounds) {
  using Family = GemmWork::Family;
  const auto longest = [](const GemmWork& problem, bool in_place) {
    const auto splits = splits_of(problem, in_place);
    return std::pair(splits.size(), splits.back());
  };
  const GemmWork wgmma = split_problem(Family::wgmma, 100, 300, 800),
                 mma = split_problem(Family::mma_sync, 300, 100, 200),
                 cores = split_problem(Family::simt, 100, 300, 200);
  EXPECT_EQ(longest(wgmma, false), std::pair(std::size_t{22}, 132));
  EXPECT_EQ(longest(mma, false), std::pair(std::size_t{36}, 396));
  EXPECT_EQ(longest(mma, true), std::pair(std::size_t{8}, 9));
  const auto shorter = [](GemmWork problem) {
    problem.k -= 1;
    return problem;
  };
  EXPECT_TRUE(is_long_enough(wgmma, false));
  EXPECT_FALSE(is_long_enough(shorter(wgmma), false));
  EXPECT_TRUE(is_long_enough(mma, false));
  EXPECT_FALSE(is_long_enough(shorter(mma), false));
  EXPECT_TRUE(is_long_enough(shorter(mma), true)) << "in place however short";
  EXPECT_TRUE(is_long_enough(cores, true));
  EXPECT_FALSE(is_long_enough(shorter(cores), true)) << "but on the CUDA cores";
  EXPECT_FALSE(is_long_enough(shorter(cores), false));
  GemmTile tile{.k = 10, .blocks_per_sm = 2};
  EXPECT_TRUE(may_fill(mma, tile, 5, 4, false, 10.0));
  EXPECT_FALSE(may_fill(mma, tile, 5, 5, false, 10.0));
  EXPECT_TRUE(may_fill(mma, tile, 5, 5, true, 10.0)) << "in place";
  EXPECT_TRUE(may_fill(wgmma, tile, 5, 5, false, 10.0)) << "persistent";
  tile.blocks_per_sm = 4;
  EXPECT_TRUE(may_fill(mma, tile, 5, 6, false, 10.0));
  EXPECT_FALSE(may_fill(mma, tile, 5, 7, false, 10.0)) << "three rounds";
  GemmWork shared = wgmma;
  shared.k = 280;
  EXPECT_TRUE(suits_stream_k(shared, tile));
  shared.k = 279;
  EXPECT_FALSE(suits_stream_k(shared, tile));
  shared.k = 280, shared.batch = 2;
  EXPECT_FALSE(suits_stream_k(shared, tile));
  shared.batch = 1, shared.bias = true;
  EXPECT_FALSE(suits_stream_k(shared, tile));
}

}  // namespace
}  // namespace ridgeline::worked_menus

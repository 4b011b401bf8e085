// What a chip makes of a library's kernel, worked out by hand: fewer stages where shared memory is short, fewer
// registers where there are fewer, shorter blocks where blocks are.
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "sim/kernels/products/tile_menu.h"
#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_fitting {
namespace {

using testing_support::made_up_chip;

/// An SM of 65,536 registers and 100,000 bytes of shared memory, of which a block has none reserved.
Gpu roomy_chip() {
  Gpu gpu = made_up_chip();
  gpu.sm.registers = 65536;
  gpu.sm.register_allocation_unit = 256;
  gpu.sm.shared_per_sm = Bytes{100000.0}, gpu.sm.shared_per_block = Bytes{90000.0};
  gpu.sm.shared_reserved_per_block = Bytes{0.0}, gpu.sm.shared_allocation_unit = Bytes{1.0};
  return gpu;
}
/// 128 x 64, 32 deep, in 16 bits: 12,288 bytes a stage, of which five, and 1,000 bytes besides.
TileChoice five_stages() {
  return {.tile = {.m = 128, .n = 64, .k = 32, .stages = 5, .first_stages = 5},
          .threads = 128,
          .registers = 100,
          .shared_bytes = 5 * 12288 + 1000};
}
std::string fitted(const TileChoice& choice, const Gpu& gpu, GemmClass kernels = GemmClass::mma_half) {
  const GpuMenu menu = menu_on(gpu, std::array{choice}, kernels);
  if (menu.entries.empty()) return "none";
  const TileChoice& one = menu.entries[0];
  return fmt::format("{} stages, {} ahead, {} bytes, {} an SM, {} threads of {}, {} spilled", one.tile.stages,
                     testing_support::number_text(one.tile.ahead), one.shared_bytes, one.tile.blocks_per_sm,
                     one.threads, one.registers, testing_support::number_text(one.tile.spilled));
}
std::string fitted_in(double bytes, TileChoice choice = five_stages(), GemmClass kernels = GemmClass::mma_half) {
  Gpu gpu = roomy_chip();
  gpu.sm.shared_per_block = Bytes{bytes};
  return fitted(choice, gpu, kernels);
}

// 100 registers of 32 threads are 13 pieces of 256: a quarter of 65,536 holds four such warps, so an SM four blocks. Of
// 62,440 bytes it holds one.
TEST(WorkedFitting, a_kernel_that_fits_stays_as_it_is) {
  EXPECT_EQ(fitted_in(90000.0), "5 stages, 0 ahead, 62440 bytes, 1 an SM, 128 threads of 100, 0 spilled");
  EXPECT_EQ(fitted_in(62440.0), "5 stages, 0 ahead, 62440 bytes, 1 an SM, 128 threads of 100, 0 spilled");
  Gpu roomy = roomy_chip();
  roomy.sm.shared_per_sm = Bytes{10.0 * 62440};
  EXPECT_EQ(fitted(five_stages(), roomy), "5 stages, 0 ahead, 62440 bytes, 4 an SM, 128 threads of 100, 0 spilled");
  TileChoice persistent = five_stages();
  persistent.tile.wgmma_m = 128;
  EXPECT_EQ(fitted(persistent, roomy), "5 stages, 0 ahead, 62440 bytes, 1 an SM, 128 threads of 100, 0 spilled");
}

// A library compiles for what there is: between whole stages those of shorter k-steps, down to two of 32 bytes, half of
// a stage each.
TEST(WorkedFitting, stages_shrink_to_the_shared_memory_of_a_block) {
  EXPECT_EQ(fitted_in(62439.0), "4 stages, 3.99991862 ahead, 62439 bytes, 1 an SM, 128 threads of 100, 0 spilled");
  EXPECT_EQ(fitted_in(1000.0 + 2.5 * 12288),
            "2 stages, 1.5 ahead, 31720 bytes, 1 an SM, 128 threads of 100, 0 spilled");
  EXPECT_EQ(fitted_in(1000.0 + 2.0 * 12288), "2 stages, 1 ahead, 25576 bytes, 1 an SM, 128 threads of 100, 0 spilled");
  EXPECT_EQ(fitted_in(1000.0 + 1.5 * 12288),
            "2 stages, 0.75 ahead, 19432 bytes, 1 an SM, 128 threads of 100, 0 spilled");
  EXPECT_EQ(fitted_in(1000.0 + 1.0 * 12288),
            "2 stages, 0.5 ahead, 13288 bytes, 1 an SM, 128 threads of 100, 0 spilled");
  EXPECT_EQ(fitted_in(999.0 + 1.0 * 12288), "none");
  // A kernel of a hardware file has whole stages, two at least.
  TileChoice given = five_stages();
  given.compiled_for_chip = false;
  EXPECT_EQ(fitted_in(62439.0, given), "4 stages, 3 ahead, 50152 bytes, 1 an SM, 128 threads of 100, 0 spilled");
  EXPECT_EQ(fitted_in(1000.0 + 2.0 * 12288, given),
            "2 stages, 1 ahead, 25576 bytes, 1 an SM, 128 threads of 100, 0 spilled");
  EXPECT_EQ(fitted_in(999.0 + 2.0 * 12288, given), "none");
}

// Steps of the CUDA cores are 16 bytes at least: 4 of 8 values of four bytes, 6,144 bytes a stage here, of which five
// and 1,000 bytes are three blocks an SM; of 3,072 there would be six, but registers hold four. Shorter ones are no
// more.
TEST(WorkedFitting, the_shortest_step_is_that_of_the_class) {
  TileChoice cores = five_stages();
  cores.tile.k = 8;
  cores.shared_bytes = 5 * 6144 + 1000;
  EXPECT_EQ(fitted_in(1000.0 + 6144, cores, GemmClass::simt),
            "2 stages, 0.5 ahead, 7144 bytes, 3 an SM, 128 threads of 100, 0 spilled");
  EXPECT_EQ(fitted_in(999.0 + 6144, cores, GemmClass::simt), "none");
  cores.tile.k = 4;  // the shortest step there is
  cores.shared_bytes = 5 * 3072 + 1000;
  EXPECT_EQ(fitted_in(1000.0 + 2.0 * 3072, cores, GemmClass::simt),
            "2 stages, 1 ahead, 7144 bytes, 4 an SM, 128 threads of 100, 0 spilled");
  EXPECT_EQ(fitted_in(999.0 + 2.0 * 3072, cores, GemmClass::simt), "none");
}

// The SM takes some of its shared memory for each block and hands it out in pieces.
TEST(WorkedFitting, what_is_reserved_of_an_sm_is_no_room_for_stages) {
  Gpu gpu = roomy_chip();
  gpu.sm.shared_per_sm = Bytes{50000.0}, gpu.sm.shared_reserved_per_block = Bytes{1024.0};
  gpu.sm.shared_allocation_unit = Bytes{128.0};
  // (50,000 - 1,024 - 128 - 1,000) / 12,288
  EXPECT_EQ(fitted(five_stages(), gpu),
            "3 stages, 2.89388021 ahead, 48848 bytes, 1 an SM, 128 threads of 100, 0 spilled");
}

TileChoice many_registers() {
  TileChoice choice = five_stages();
  choice.tile.n = 128;
  choice.registers = 200;
  choice.shared_bytes = 50000;
  return choice;
}

// Half of the registers: 100 for each of 128 threads, whose 128 x 128 results are 128 each, with 24 besides 52 too
// many: each is stored and loaded again, 8 bytes.
TEST(WorkedFitting, fewer_registers_spill_sums) {
  Gpu gpu = roomy_chip();
  gpu.sm.registers = 32768;
  EXPECT_EQ(fitted(many_registers(), gpu),
            "5 stages, 0 ahead, 50000 bytes, 2 an SM, 128 threads of 100, 53248 spilled");
  gpu.sm.registers = 49152;  // 150: two too many
  EXPECT_EQ(fitted(many_registers(), gpu), "5 stages, 0 ahead, 50000 bytes, 2 an SM, 128 threads of 150, 2048 spilled");
  gpu.sm.registers = 50000;  // 152.6
  EXPECT_EQ(fitted(many_registers(), gpu), "5 stages, 0 ahead, 50000 bytes, 2 an SM, 128 threads of 152, 0 spilled");
  gpu.sm.registers = 5243;  // 16.0004 each
  EXPECT_EQ(fitted(many_registers(), gpu),
            "5 stages, 0 ahead, 50000 bytes, 2 an SM, 128 threads of 16, 139263.625 spilled");
  gpu.sm.registers = 5242;
  EXPECT_EQ(fitted(many_registers(), gpu), "none");
  // Kernels of a hardware file are not compiled anew.
  TileChoice given = many_registers();
  given.compiled_for_chip = false;
  gpu.sm.registers = 32768;
  EXPECT_EQ(fitted(given, gpu), "5 stages, 0 ahead, 50000 bytes, 1 an SM, 128 threads of 200, 0 spilled");
  gpu.sm.registers = 65536;
  EXPECT_EQ(fitted(many_registers(), gpu), "5 stages, 0 ahead, 50000 bytes, 2 an SM, 128 threads of 200, 0 spilled");
}

// Handed out in pieces of 512 instead of 256 each warp loses 128 in the mean: 25,600 - 4 x 128 are 196 for each thread.
TEST(WorkedFitting, larger_pieces_of_registers_lose_half_of_one_more) {
  Gpu gpu = roomy_chip();
  gpu.sm.register_allocation_unit = 512;
  EXPECT_EQ(fitted(many_registers(), gpu), "5 stages, 0 ahead, 50000 bytes, 2 an SM, 128 threads of 196, 0 spilled");
  gpu.sm.register_allocation_unit = 128;
  EXPECT_EQ(fitted(many_registers(), gpu), "5 stages, 0 ahead, 50000 bytes, 2 an SM, 128 threads of 200, 0 spilled");
}

// Half of the threads have twice the registers each, up to 255; blocks of less than a warp compute nothing.
TEST(WorkedFitting, shorter_blocks_have_more_registers_a_thread) {
  Gpu gpu = roomy_chip();
  gpu.sm.max_threads_per_block = 96;
  // 25,600 / 96 are 266, but an instruction names 255; 16,384 / 96 + 24 = 194.7 are wanted
  EXPECT_EQ(fitted(many_registers(), gpu), "5 stages, 0 ahead, 50000 bytes, 2 an SM, 96 threads of 255, 0 spilled");
  gpu.sm.max_threads_per_block = 64;  // 280 are wanted, 25 too many
  EXPECT_EQ(fitted(many_registers(), gpu), "5 stages, 0 ahead, 50000 bytes, 2 an SM, 64 threads of 255, 12800 spilled");
  gpu.sm.max_threads_per_block = 32;
  EXPECT_EQ(fitted(many_registers(), gpu), "5 stages, 0 ahead, 50000 bytes, 2 an SM, 32 threads of 255, 71936 spilled");
  gpu.sm.max_threads_per_block = 31;
  EXPECT_EQ(fitted(many_registers(), gpu), "none");
}

// Of 384 threads 128 fetch, with 24 registers each: of half of 384 x 168 the other 256 have 114.
TEST(WorkedFitting, threads_that_fetch_keep_their_few_registers) {
  TileChoice persistent = many_registers();
  persistent.threads = 384, persistent.registers = 168, persistent.tile.m = 256, persistent.tile.wgmma_m = 128;
  Gpu gpu = roomy_chip();
  gpu.sm.registers = 32768;  // 256 x 128 / 256 + 24 = 152 wanted
  EXPECT_EQ(fitted(persistent, gpu, GemmClass::wgmma_half),
            "5 stages, 0 ahead, 50000 bytes, 1 an SM, 384 threads of 84, 77824 spilled");
  gpu.sm.registers = 65536, gpu.sm.max_threads_per_block = 192;  // 64 fetch, 128 compute
  EXPECT_EQ(fitted(persistent, gpu, GemmClass::wgmma_half),
            "5 stages, 0 ahead, 50000 bytes, 1 an SM, 192 threads of 255, 25600 spilled");
}

// Lengths and entries are filled up to groups of four; what speaks against a tile counts on Hopper and Blackwell alone.
TEST(WorkedFitting, a_menu_lists_the_lengths_of_its_entries) {
  Gpu gpu = roomy_chip();
  TileChoice second = five_stages(), third = five_stages();
  second.tile.m = 64, second.tile.n = 32, second.tile.k = 16, second.log_aspect = 1.0;
  third.tile.stream_k = true;
  GemmConstants constants{};
  constants.rank_aspect = 0.25;
  GpuMenu menu = menu_on(gpu, std::array{five_stages(), second, third}, GemmClass::mma_half, constants);
  EXPECT_TRUE(menu.with_stream_k && menu.often_others && !menu.changed);
  EXPECT_EQ(menu.sides, (std::vector<float>{128, 64, 32, 1}));
  EXPECT_EQ(menu.depths, (std::vector<float>{32, 16, 1, 1}));
  ASSERT_EQ(menu.weights, (std::vector<float>{1.0F, 1.25F, 1.0F, 1.0F}));
  ASSERT_EQ(menu.places.size(), 4u);
  const auto places = [&](std::size_t i) {
    return std::array<int, 3>{menu.places[i].m, menu.places[i].n, menu.places[i].k};
  };
  EXPECT_EQ(places(0), (std::array{0, 1, 0}));
  EXPECT_EQ(places(1), (std::array{1, 2, 1}));
  EXPECT_EQ(places(2), (std::array{0, 1, 0}));
  EXPECT_EQ(places(3), (std::array{0, 1, 0}));
  gpu.architecture = Architecture::blackwell;
  EXPECT_TRUE(menu_on(gpu, std::array{second}, GemmClass::mma_half, constants).often_others);
  gpu.architecture = Architecture::ampere;
  menu = menu_on(gpu, std::array{second}, GemmClass::mma_half, constants);
  EXPECT_FALSE(menu.with_stream_k || menu.often_others);
  EXPECT_EQ(menu.weights, (std::vector<float>{1.0F, 1.0F, 1.0F, 1.0F}));
  // 160 entries and 256 lengths are foreseen.
  std::vector<TileChoice> many(160, five_stages());
  EXPECT_EQ(menu_on(gpu, many, GemmClass::mma_half).entries.size(), 160u);
  for (int i = 0; i < 128; ++i)
    many[static_cast<std::size_t>(i)].tile.m = 8 + 2 * i, many[static_cast<std::size_t>(i)].tile.n = 9 + 2 * i;
  EXPECT_NO_THROW(menu_on(gpu, many, GemmClass::mma_half));
  many.back().tile.m = 300;
  EXPECT_THROW(menu_on(gpu, many, GemmClass::mma_half), std::invalid_argument) << "the 257th length";
  many.resize(128);
  EXPECT_EQ(menu_on(gpu, many, GemmClass::mma_half).sides.size(), 256u);
  EXPECT_THROW(menu_on(gpu, std::vector<TileChoice>(161, five_stages()), GemmClass::mma_half), std::invalid_argument);
}

}  // namespace
}  // namespace ridgeline::worked_fitting

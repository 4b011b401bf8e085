// The quick choice of a product's kernel against the slow one that times every candidate and then applies the ranking.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/gemm_selection.h"
#include "sim/occupancy/occupancy.h"

namespace ridgeline {
namespace {

struct Tried {
  const TileChoice* choice;
  GemmTile tile;
  int splits;
  double seconds, rank;
};

/// The numbers of splits that the libraries use: persistent kernels and kernels that add up in place few; others what
/// fills half a round of the SMs, one, two, or three that are resident, none of less than 64 of k.
std::set<int> splits_to_try(const GemmWork& work, double count, double sms, int blocks_per_sm, bool in_place) {
  if (work.family == GemmWork::Family::wgmma) return {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::set<int> splits{1};
  if (in_place)
    for (int few = 2; few < 10; ++few) splits.insert(few);
  else
    for (const double rounds : {0.5, 1.0, 2.0, 3.0}) {
      if (rounds > 2.0 && blocks_per_sm < 3) continue;
      const double most = std::min(64.0, static_cast<double>(work.k / 64));
      splits.insert(static_cast<int>(std::max(1.0, std::min(most, std::floor(rounds * sms / count)))));
    }
  return splits;
}

/// Every entry of the menu but shared k-steps, with every split that the law allows, each timed in full.
std::vector<Tried> all_candidates(const GemmWork& work, const Gpu& gpu, const GemmConstants& c, const GpuMenu& menu) {
  const GemmLaw law(work, gpu, c);
  const bool persistent = work.family == GemmWork::Family::wgmma;
  std::vector<Tried> all;
  for (const TileChoice& choice : menu.entries) {
    if (choice.tile.stream_k) continue;
    GemmTile tile = choice.tile;
    if (!persistent) {
      tile.blocks_per_sm = occupancy_of(gpu.sm, choice.threads, choice.registers, choice.shared_bytes).blocks;
      if (tile.blocks_per_sm == 0) continue;
    }
    for (const bool in_place : {false, true}) {
      tile.stream_k = in_place;
      bool longer_allowed = true;
      for (const int splits : splits_to_try(work, law.tiles(tile), gpu.sm.count, tile.blocks_per_sm, in_place)) {
        if (splits == 1 && in_place) continue;
        if (splits > 1 && (!in_place || work.family == GemmWork::Family::simt) && !menu.changed &&
            work.k < (persistent ? 8 : 2) * std::min(work.m, work.n))
          continue;
        const Mode mode = in_place         ? Mode::in_place
                          : splits > 1     ? Mode::second_kernel
                          : work.batch > 1 ? Mode::batched
                                           : Mode::whole;
        if (!menu.changed && !choice.runs.has(mode, work.layout)) continue;
        longer_allowed = longer_allowed && !(persistent && in_place) && law.may_split(tile, splits);
        if (!longer_allowed) continue;
        const double m = tile.m, n = tile.n;
        double dislike = c.rank_aspect * std::log(std::max(m, n) / std::min(m, n)) +
                         c.rank_area * std::log(m * n / 16384.0) + c.rank_deep * std::log(tile.k / 32.0);
        if (m >= 256 || n >= 256) dislike += c.rank_wide;
        const double blocks = law.tiles(tile) * splits, sms = gpu.sm.count;
        if (blocks <= sms) dislike += c.rank_one_round;
        const double multiply_adds = static_cast<double>(work.batch) * static_cast<double>(work.m) *
                                     static_cast<double>(work.n) * static_cast<double>(work.k);
        const double fullest = pieces_of(blocks / sms, 1.0) * m * n * tile.k *
                               pieces_of(static_cast<double>(work.k), static_cast<double>(splits) * tile.k);
        dislike += c.rank_waste * (1.0 - multiply_adds / sms / fullest);
        if (splits > 1) dislike += c.rank_split + c.rank_log_split * std::log(splits);
        if (in_place) dislike += c.rank_in_place;
        if (work.sparse != SparseOperand::none || menu.changed) dislike = 0.0;
        const double seconds = law.seconds(tile, splits);
        all.push_back({&choice, tile, splits, seconds, seconds * (1.0 + dislike)});
      }
    }
  }
  return all;
}

/// A random product of a type that the GPU has kernels for.
Matmul random_product(std::mt19937_64& random) {
  const auto size = [&](double low, double high) {
    const auto value = static_cast<std::int64_t>(std::exp2(std::uniform_real_distribution<double>(low, high)(random)));
    return random() % 3 == 0 ? value : std::max<std::int64_t>(8, value / 8 * 8);
  };
  return {.type = std::array{DType::bf16, DType::fp16, DType::tf32, DType::fp32}[random() % 4],
          .batch = random() % 4 == 0 ? size(1, 9) : 1,
          .m = size(0, 15),
          .n = size(0, 15),
          .k = size(0, 15),
          .layout = static_cast<Layout>(random() % 3),
          .bias = random() % 8 == 0};
}

void expect_exhaustive(const GemmWork& work, const Gpu& gpu, const GpuMenus& menus, const std::string& where) {
  const GemmClass kernel_class = gemm_class_of(work, gpu);
  const GemmConstants& constants = gemm_constants(kernel_class);
  // Shared k-steps follow a rule of their own; without them the slow way below is all there is to know.
  GpuMenu menu = menus.of(kernel_class, work.batch > 1);
  std::vector<TileChoice> entries;
  for (const TileChoice& entry : menu.entries)
    if (!entry.tile.stream_k) entries.push_back(entry);
  const bool changed = menu.changed, profiled = menu.profiled;
  menu = menu_on(gpu, entries);
  menu.changed = changed;
  menu.profiled = profiled;
  const GemmSelection chosen = select_gemm(work, gpu, constants, menu);
  const std::vector<Tried> all = all_candidates(work, gpu, constants, menu);
  ASSERT_FALSE(all.empty()) << where;
  double fastest = std::numeric_limits<double>::infinity(), best_rank = fastest;
  for (const Tried& tried : all) fastest = std::min(fastest, tried.seconds);
  const Tried* same = nullptr;
  for (const Tried& tried : all) {
    if (tried.seconds <= 1.05 * fastest) best_rank = std::min(best_rank, tried.rank);
    if (tried.choice == chosen.choice && tried.splits == chosen.splits && tried.tile.stream_k == chosen.tile.stream_k)
      same = &tried;
  }
  ASSERT_NE(same, nullptr) << where;
  EXPECT_EQ(chosen.seconds, same->seconds) << where;
  EXPECT_EQ(chosen.fastest, fastest) << where;
  EXPECT_LE(chosen.seconds, 1.05 * fastest) << where;
  EXPECT_NEAR(same->rank, best_rank, 1e-12 * best_rank) << where;
  double sum = 0.0, weights = 0.0;
  for (const Tried& tried : all) {
    if (tried.seconds > (work.sparse == SparseOperand::none && profiled ? 1.2 : 0.0) * fastest) continue;
    const double sure = std::max(0.0, 1.0 - std::max(0.0, tried.rank / same->rank - 1.0) / 0.2);
    sum += sure * sure * tried.seconds;
    weights += sure * sure;
  }
  // Floors stand for the times of those that the choice did not look at: also for some that are too slow to count.
  const double expected = weights > 0.0 ? sum / weights : same->seconds;
  EXPECT_NEAR(chosen.expected, expected, (weights > 0.0 ? 0.04 : 0.0) * expected) << where;
}

class OnEveryGpu : public ::testing::TestWithParam<std::string> {};

TEST_P(OnEveryGpu, the_choice_is_the_one_that_timing_every_candidate_would_make) {
  const Gpu gpu = load_gpu(GetParam());
  const GpuMenus menus(gpu);
  std::mt19937_64 random(std::hash<std::string>{}(GetParam()));
  for (int i = 0; i < 500; ++i) {
    const Matmul op = random_product(random);
    expect_exhaustive(gemm_problem(op, gpu), gpu, menus, fmt::format("{} {}", gpu.name, shape_of(op)));
  }
}

TEST_P(OnEveryGpu, the_choice_among_the_kernels_of_the_generation_before_is_exhaustive_too) {
  const Gpu gpu = load_gpu(GetParam());
  if (gpu.sm.rates.tensor_tf32 <= 0.0) GTEST_SKIP() << "no tf32";
  const GpuMenus menus(gpu);
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    Matmul op = random_product(random);
    op.type = DType::tf32;
    GemmWork work = gemm_problem(op, gpu);
    work.family = GemmWork::Family::mma_sync;
    expect_exhaustive(work, gpu, menus, fmt::format("{} {}", gpu.name, shape_of(op)));
  }
}

TEST_P(OnEveryGpu, the_choice_for_sparse_products_is_exhaustive_and_never_slower_than_the_dense_one) {
  const Gpu gpu = load_gpu(GetParam());
  if (gpu.sm.rates.sparsity_factor <= 1.0) GTEST_SKIP() << "no sparse tensor cores";
  const GpuMenus menus(gpu);
  std::mt19937_64 random(11);
  for (int i = 0; i < 300; ++i) {
    Matmul op = random_product(random);
    if (op.type == DType::fp32) op.type = DType::bf16;
    op.m = (op.m + 15) / 16 * 16;
    op.n = (op.n + 15) / 16 * 16;
    op.k = (op.k + 15) / 16 * 16;
    const std::string where = fmt::format("{} {}", gpu.name, shape_of(op));
    const GemmWork dense = gemm_problem(op, gpu);
    op.sparse = i % 2 == 0 ? SparseOperand::a : SparseOperand::b;
    const GemmWork sparse = gemm_problem(op, gpu);
    expect_exhaustive(sparse, gpu, menus, where);
    EXPECT_LE(select_gemm(sparse, gpu, menus).seconds, select_gemm(dense, gpu, menus).seconds * (1.0 + 1e-12)) << where;
  }
}

TEST_P(OnEveryGpu, a_floor_is_never_above_the_law) {
  const Gpu gpu = load_gpu(GetParam());
  const GpuMenus menus(gpu);
  std::mt19937_64 random(13);
  for (int i = 0; i < 200; ++i) {
    const Matmul op = random_product(random);
    const GemmWork work = gemm_problem(op, gpu);
    const GemmClass kernel_class = gemm_class_of(work, gpu);
    const GemmLaw law(work, gpu, gemm_constants(kernel_class));
    const GemmFloor floor(law);
    for (const TileChoice& choice : menus.of(kernel_class, work.batch > 1).entries) {
      if (choice.tile.stream_k) continue;
      GemmTileShapes shape;
      shape.push_back(choice.tile);
      ASSERT_EQ(shape.filled(), 4U);
      const auto pieces = [](std::int64_t length, int piece) {
        const auto count = static_cast<float>(pieces_of(static_cast<double>(length), piece));
        return std::array{count, count, count, count};
      };
      const auto rows = pieces(op.m, choice.tile.m), columns = pieces(op.n, choice.tile.n),
                 steps = pieces(op.k, choice.tile.k);
      const GemmTilings tiling{rows.data(), columns.data(), steps.data()};
      std::array<float, 4> whole{};
      floor.whole(shape, tiling, whole.data());
      const std::array<float, 4> first = whole;
      floor.raise(shape, tiling, 0, whole.data());
      const double seconds_whole = law.seconds(choice.tile, 1);
      EXPECT_LE(whole[0], seconds_whole) << shape_of(op);
      EXPECT_LE(first[0], whole[0] * (1.0F + 1e-6F)) << shape_of(op);
      EXPECT_EQ(whole[0], whole[3]) << "four of a kind";
      for (const bool in_place : {false, true}) {
        GemmTile tile = choice.tile;
        tile.stream_k = in_place;
        if (in_place && work.family == GemmWork::Family::wgmma) continue;
        const std::array<float, 4> tried{2, 3, 8, 16};
        std::array<float, 4> any{}, each{};
        floor.splits(shape, tiling, {.few = 16, .most = 16}, in_place, any.data());
        floor.split(shape, tiling, 0, tried.data(), in_place, each.data());
        for (std::size_t s = 0; s < tried.size(); ++s) {
          const int splits = static_cast<int>(tried[s]);
          if (!law.may_split(tile, splits)) continue;
          const double seconds = law.seconds(tile, splits);
          EXPECT_LE(each[s], seconds) << shape_of(op) << splits;
          EXPECT_LE(any[0], seconds) << shape_of(op) << splits;
        }
      }
    }
  }
}

TEST_P(OnEveryGpu, floors_are_mostly_within_a_hundredth_of_the_law) {
  const Gpu gpu = load_gpu(GetParam());
  const GpuMenus menus(gpu);
  std::mt19937_64 random(17);
  int near = 0, all = 0;
  for (int i = 0; i < 300; ++i) {
    const GemmWork work = gemm_problem(random_product(random), gpu);
    const GemmClass kernel_class = gemm_class_of(work, gpu);
    const GemmLaw law(work, gpu, gemm_constants(kernel_class));
    const GemmFloor floor(law);
    const GpuMenu& menu = menus.of(kernel_class, work.batch > 1);
    std::vector<float> rows(menu.shapes.filled(), 1.0F), columns = rows, steps = rows, seconds = rows;
    for (std::size_t e = 0; e < menu.entries.size(); ++e) {
      rows[e] = static_cast<float>(pieces_of(static_cast<double>(work.m), menu.entries[e].tile.m));
      columns[e] = static_cast<float>(pieces_of(static_cast<double>(work.n), menu.entries[e].tile.n));
      steps[e] = static_cast<float>(pieces_of(static_cast<double>(work.k), menu.entries[e].tile.k));
    }
    const GemmTilings tilings{rows.data(), columns.data(), steps.data()};
    floor.whole(menu.shapes, tilings, seconds.data());
    for (std::size_t e = 0; e < menu.shapes.filled(); e += GemmTileShapes::kGroup)
      floor.raise(menu.shapes, tilings, e, seconds.data());
    for (std::size_t e = 0; e < menu.entries.size(); ++e) {
      if (menu.entries[e].tile.stream_k) continue;
      ++all;
      if (seconds[e] > 0.99 * law.seconds(menu.entries[e].tile, 1)) ++near;
    }
  }
  EXPECT_GE(near, 0.9 * all) << "speed, not results: see gemm_floor.h";
}

INSTANTIATE_TEST_SUITE_P(Shipped, OnEveryGpu, ::testing::ValuesIn(hardware_names()), [](const auto& gpu) {
  std::string name = gpu.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(GemmSelection, takes_none_that_is_more_than_a_twentieth_slower_than_the_fastest) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const GpuMenus menus(gpu);
  for (const std::int64_t n : {64, 320, 1000, 4096, 50304}) {
    const GemmSelection chosen = select_gemm(
        gemm_problem(Matmul{.type = DType::bf16, .batch = 1, .m = 2048, .n = n, .k = 768, .layout = Layout::nt}, gpu),
        gpu, menus);
    EXPECT_GE(chosen.seconds, chosen.fastest);
    EXPECT_LE(chosen.seconds, 1.05 * chosen.fastest);
  }
}

}  // namespace
}  // namespace ridgeline

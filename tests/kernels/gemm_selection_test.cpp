// The quick choice of a product's kernels against the slow one that times every candidate and then ranks them.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/products/gemm_candidates.h"
#include "sim/kernels/products/gemm_selection.h"
#include "sim/timing/likely_time.h"

namespace ridgeline {
namespace {

struct Tried {
  const TileChoice* choice;
  GemmTile tile;
  int splits;
  double seconds, rank;
};

/// Every entry of the menu in every way that it runs, each timed in full.
std::vector<Tried> all_candidates(const GemmWork& work, const Gpu& gpu, const GemmConstants& c, const GpuMenu& menu) {
  const GemmLaw law(work, gpu, c);
  const bool persistent = work.family == GemmWork::Family::wgmma;
  std::vector<Tried> all;
  for (const TileChoice& choice : menu.entries) {
    const double m = choice.tile.m, n = choice.tile.n;
    double of_tile = c.rank_aspect * std::log(std::max(m, n) / std::min(m, n)) +
                     c.rank_area * std::log(m * n / 16384.0) + c.rank_deep * std::log(choice.tile.k / 32.0);
    if (m >= 256 || n >= 256) of_tile += c.rank_wide;
    const auto add = [&](int splits, bool in_place) {
      const Mode mode = in_place         ? Mode::in_place
                        : splits > 1     ? Mode::second_kernel
                        : work.batch > 1 ? Mode::batched
                                         : Mode::whole;
      if (!choice.runs.has(mode, work.layout)) return;
      GemmTile tile = choice.tile;
      tile.stream_k = in_place;
      if (!law.may_split(tile, splits)) return;
      double dislike = of_tile;
      if (splits > 1) dislike += c.rank_split + c.rank_log_split * std::log(splits);
      if (in_place) dislike += splits > 1 ? c.rank_in_place : c.rank_stream;
      if (!menu.often_others) dislike = 0.0;
      const double seconds = law.seconds(tile, splits);
      all.push_back({&choice, tile, splits, seconds, seconds * (1.0 + dislike)});
    };
    if (choice.tile.stream_k) {
      if (work.batch == 1 && !work.bias && work.k >= 28 * choice.tile.k) add(1, true);
      continue;
    }
    add(1, false);
    if (persistent ? work.bias : work.batch > 1) continue;
    const std::int64_t shorter = std::min(work.m, work.n);
    for (int splits = 2; splits <= kSummedSplits.back(); ++splits) {
      if (persistent) {
        const bool usual =
            std::find(kPersistentSplits.begin(), kPersistentSplits.end(), splits) != kPersistentSplits.end();
        if (usual && work.k >= 8 * shorter) add(splits, false);
        continue;
      }
      const bool usual = std::find(kSummedSplits.begin(), kSummedSplits.end(), splits) != kSummedSplits.end();
      const double resident = gpu.sm.count * std::min(3, choice.tile.blocks_per_sm);
      if (usual && work.k >= 2 * shorter && law.tiles(choice.tile) * splits <= resident) add(splits, false);
      if (splits <= 9 && (work.k >= 2 * shorter || work.family != GemmWork::Family::simt)) add(splits, true);
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
  const GpuMenu& menu = menus.of(kernel_class, work.batch > 1);
  const GemmSelection chosen = select_gemm(work, gpu, constants, menu);
  std::vector<Tried> all = all_candidates(work, gpu, constants, menu);
  ASSERT_FALSE(all.empty()) << where;
  std::sort(all.begin(), all.end(), [](const Tried& a, const Tried& b) { return a.rank < b.rank; });
  std::vector<double> ranks;
  const Tried* same = nullptr;
  for (const Tried& tried : all) {
    ranks.push_back(tried.rank);
    if (tried.choice == chosen.choice && tried.splits == chosen.splits && tried.tile.stream_k == chosen.tile.stream_k)
      same = &tried;
  }
  ASSERT_NE(same, nullptr) << where;
  constexpr double kSinglePrecision = 1e-6;
  EXPECT_EQ(chosen.seconds, same->seconds) << where;
  EXPECT_NEAR(same->rank, ranks.front(), kSinglePrecision * ranks.front()) << where;
  const double expected = likely_of(ranks, menu.often_others);
  EXPECT_NEAR(chosen.expected, expected, kSinglePrecision * expected) << where;
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
    EXPECT_LE(select_gemm(sparse, gpu, menus).expected, select_gemm(dense, gpu, menus).expected * (1.0 + 1e-12))
        << where;
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
      EXPECT_LE(whole[0], law.seconds(choice.tile, 1)) << shape_of(op);
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
    for (std::size_t e = 0; e < menu.entries.size(); ++e) {
      if (menu.entries[e].tile.stream_k) continue;
      ++all;
      if (seconds[e] > 0.99 * law.seconds(menu.entries[e].tile, 1)) ++near;
    }
  }
  const bool seventy_watts = GetParam() == "nvidia-t4" || GetParam() == "nvidia-l4";
  const double share = seventy_watts ? 0.75 : 0.9;  // measurements/DEVIATIONS.md
  RecordProperty("percent_near", 100 * near / all);
  EXPECT_GE(near, share * all) << "speed, not results: see gemm_floor.h";
}

TEST_P(OnEveryGpu, floors_of_splits_are_mostly_within_a_hundredth_of_the_law) {
  const Gpu gpu = load_gpu(GetParam());
  const GpuMenus menus(gpu);
  std::mt19937_64 random(19);
  int near = 0, all = 0;
  for (int i = 0; i < 300; ++i) {
    const GemmWork work = gemm_problem(random_product(random), gpu);
    const GemmClass kernel_class = gemm_class_of(work, gpu);
    const GemmLaw law(work, gpu, gemm_constants(kernel_class));
    const GemmFloor floor(law);
    for (const TileChoice& choice : menus.of(kernel_class, work.batch > 1).entries) {
      if (choice.tile.stream_k) continue;
      GemmTileShapes shape;
      shape.push_back(choice.tile);
      const auto pieces = [](std::int64_t length, int piece) {
        return std::vector<float>(4, static_cast<float>(pieces_of(static_cast<double>(length), piece)));
      };
      const auto rows = pieces(work.m, choice.tile.m), columns = pieces(work.n, choice.tile.n),
                 steps = pieces(work.k, choice.tile.k);
      const std::array<float, 4> tried{2, 3, 8, 16};
      std::array<float, 4> each{};
      floor.split(shape, {rows.data(), columns.data(), steps.data()}, 0, tried.data(), false, each.data());
      for (std::size_t s = 0; s < tried.size(); ++s) {
        if (!law.may_split(choice.tile, static_cast<int>(tried[s]))) continue;
        ++all;
        if (each[s] > 0.99 * law.seconds(choice.tile, static_cast<int>(tried[s]))) ++near;
      }
    }
  }
  ASSERT_GE(all, 100);
  EXPECT_GE(near, 0.9 * all) << "speed, not results: see gemm_floor.h";
}

INSTANTIATE_TEST_SUITE_P(Shipped, OnEveryGpu, ::testing::ValuesIn(hardware_names()), [](const auto& gpu) {
  std::string name = gpu.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(LikelyTime, falls_with_each_rank_and_with_more_kernels_and_does_not_jump_where_they_change_places) {
  EXPECT_DOUBLE_EQ(likely_of(std::array{1.0}, false), 1.0);
  std::mt19937_64 random(3);
  const auto drawn = [&] { return std::uniform_real_distribution<double>(1.0, 1.5)(random); };
  for (int i = 0; i < 1000; ++i) {
    std::vector<double> ranks(1 + random() % kTurns.size());
    for (double& rank : ranks) rank = drawn();
    std::vector<double> faster = ranks;
    faster[random() % faster.size()] *= 0.9;
    std::sort(ranks.begin(), ranks.end());
    std::sort(faster.begin(), faster.end());
    EXPECT_LE(likely_of(faster, true), likely_of(ranks, true) * (1.0 + 1e-12));
    EXPECT_GE(likely_of(faster, true), 0.9 * likely_of(ranks, true) * (1.0 - 1e-12));
    EXPECT_GE(likely_of(ranks, true), ranks.front());
    if (ranks.size() == kTurns.size()) continue;
    std::vector<double> more = ranks;
    more.push_back(drawn());
    std::sort(more.begin(), more.end());
    EXPECT_LE(likely_of(more, true), likely_of(ranks, true) * (1.0 + 1e-12));
  }
}

// As profiled on an H200: of as many multiply-adds, those with short sums keep to the kernels of the generation before.
TEST(GemmGenerations, short_sums_of_tf32_run_the_older_kernels) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const GpuMenus menus(gpu);
  const auto family = [&](const Matmul& op) { return select_gemm(gemm_problem(op, gpu), gpu, menus).family; };
  EXPECT_EQ(family({.type = DType::tf32, .batch = 1, .m = 24448, .n = 128, .k = 64, .layout = Layout::nt}),
            GemmWork::Family::mma_sync);
  EXPECT_EQ(family({.type = DType::tf32, .batch = 1, .m = 320, .n = 512, .k = 1280, .layout = Layout::nt}),
            GemmWork::Family::wgmma);
}

// cuDNN's choice for a convolution of single pixels is another than that of cuBLAS for the same product.
TEST(GemmGenerations, of_convolutions_go_less_by_size) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const GpuMenus menus(gpu);
  GemmWork problem =
      gemm_problem({.type = DType::tf32, .batch = 1, .m = 262144, .n = 320, .k = 16, .layout = Layout::nt}, gpu);
  EXPECT_EQ(select_gemm(problem, gpu, menus).family, GemmWork::Family::mma_sync);
  problem.of_convolution = true;
  EXPECT_EQ(select_gemm(problem, gpu, menus).family, GemmWork::Family::wgmma);
}

}  // namespace
}  // namespace ridgeline

// The quick choice of a product's kernel against the slow one that times every candidate and then applies the ranking.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <random>
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

/// Every entry of the menu but shared k-steps, with every split that the law allows, each timed in full.
std::vector<Tried> all_candidates(const GemmWork& work, const Gpu& gpu, const GemmConstants& c,
                                  std::span<const TileChoice> menu) {
  const GemmLaw law(work, gpu, c);
  const bool persistent = work.family == GemmWork::Family::wgmma;
  std::vector<Tried> all;
  for (const TileChoice& choice : menu) {
    if (choice.tile.stream_k) continue;
    GemmTile tile = choice.tile;
    if (!persistent) {
      tile.blocks_per_sm = occupancy_of(gpu.sm, choice.threads, choice.registers, choice.shared_bytes).blocks;
      if (tile.blocks_per_sm == 0) continue;
    }
    for (const bool in_place : {false, true}) {
      tile.stream_k = in_place;
      bool longer_allowed = true;
      for (const int splits : persistent ? std::vector<int>{1, 2, 3, 4, 6, 8, 10, 12, 16}
                                         : std::vector<int>{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 44, 64}) {
        if (splits == 1 && in_place) continue;
        longer_allowed = longer_allowed && !(persistent && in_place) && law.may_split(tile, splits);
        if (!longer_allowed) continue;
        const double m = tile.m, n = tile.n;
        double dislike = c.rank_aspect * std::log(std::max(m, n) / std::min(m, n)) +
                         c.rank_area * std::log(m * n / 16384.0) + c.rank_deep * std::log(tile.k / 32.0);
        if (m >= 256 || n >= 256) dislike += c.rank_wide;
        if (law.tiles(tile) * splits <= gpu.sm.count) dislike += c.rank_one_round;
        if (splits > 1) dislike += c.rank_split + c.rank_log_split * std::log(splits);
        if (in_place) dislike += c.rank_in_place;
        const double seconds = law.seconds(tile, splits);
        all.push_back({&choice, tile, splits, seconds, seconds * (1.0 + dislike)});
      }
    }
  }
  return all;
}

TEST(GemmSelection, is_the_one_that_timing_every_candidate_would_make) {
  std::mt19937_64 random(5);
  const auto size = [&](double low, double high) {
    const auto value = static_cast<std::int64_t>(std::exp2(std::uniform_real_distribution<double>(low, high)(random)));
    return random() % 3 == 0 ? value : std::max<std::int64_t>(8, value / 8 * 8);
  };
  for (const char* name : {"nvidia-h200-sxm-141gb", "nvidia-a100-sxm4-80gb", "nvidia-v100-sxm2-16gb"}) {
    const Gpu gpu = load_gpu(name);
    for (int i = 0; i < 400; ++i) {
      const DType type = std::vector{DType::bf16, DType::fp16, DType::fp32}[random() % 3];
      const Matmul op{.type = type,
                      .batch = random() % 4 == 0 ? size(1, 7) : 1,
                      .m = size(3, 14),
                      .n = size(3, 14),
                      .k = size(3, 13),
                      .layout = static_cast<Layout>(random() % 3)};
      const GemmWork work = gemm_problem(op, gpu);
      const GemmClass kernel_class = gemm_class_of(work, gpu);
      const GemmConstants& constants = gemm_constants(kernel_class);
      const auto menu = tile_menu(kernel_class, gpu.architecture, work.batch > 1);
      const GemmSelection chosen = select_gemm(work, gpu, constants, menu);
      const std::vector<Tried> all = all_candidates(work, gpu, constants, menu);
      double fastest = all.front().seconds;
      for (const Tried& tried : all) fastest = std::min(fastest, tried.seconds);
      double best_rank = std::numeric_limits<double>::infinity();
      const Tried* same = nullptr;
      for (const Tried& tried : all) {
        if (tried.seconds <= 1.05 * fastest) best_rank = std::min(best_rank, tried.rank);
        if (tried.choice == chosen.choice && tried.splits == chosen.splits &&
            tried.tile.stream_k == chosen.tile.stream_k)
          same = &tried;
      }
      const std::string where = fmt::format("{} {} {}x{}x{}x{}", name, name_of(type), op.batch, op.m, op.n, op.k);
      ASSERT_NE(same, nullptr) << where;
      EXPECT_DOUBLE_EQ(chosen.seconds, same->seconds) << where;
      EXPECT_LE(chosen.seconds, 1.05 * fastest) << where;
      EXPECT_NEAR(same->rank, best_rank, 1e-9 * best_rank) << where;
      EXPECT_DOUBLE_EQ(chosen.fastest, fastest) << where;
    }
  }
}

TEST(GemmSelection, takes_none_that_is_more_than_a_twentieth_slower_than_the_fastest) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (const std::int64_t n : {64, 320, 1000, 4096, 50304}) {
    const GemmSelection chosen = select_gemm(
        gemm_problem(Matmul{.type = DType::bf16, .batch = 1, .m = 2048, .n = n, .k = 768, .layout = Layout::nt}, gpu),
        gpu);
    EXPECT_GE(chosen.seconds, chosen.fastest);
    EXPECT_LE(chosen.seconds, 1.05 * chosen.fastest);
  }
}

}  // namespace
}  // namespace ridgeline

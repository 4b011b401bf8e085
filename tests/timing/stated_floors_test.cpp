// Floors of matrix products under random constants, chips and kernels: never above the law, and close to it, so that no
// part of the law is missing in them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sim/timing/products/gemm_floor.h"
#include "tests/support/draws.h"
#include "tests/timing/stated_product.h"

namespace ridgeline {
namespace {

using stated::drawn_product;
using stated::StatedProduct;
using testing_support::Draws;

class StatedFloors : public ::testing::TestWithParam<GemmWork::Family> {};

struct Ratios {
  int all = 0, near = 0;
  double most = 0;
  void add(double floor, double law) {
    ++all;
    near += floor > 0.97 * law ? 1 : 0;
    most = std::max(most, floor / law);
  }
};

TEST_P(StatedFloors, are_below_the_law_and_mostly_within_three_hundredths) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  Ratios whole, apart, in_place;
  for (int i = 0; i < 5000; ++i) {
    StatedProduct p = drawn_product(draws, GetParam());
    p.work.stream_k = false;
    const GemmLaw law(p.work, p.gpu, p.c, p.miss, p.result_miss);
    const GemmFloor floor(law);
    GemmTile tile = tile_of(p.work);
    GemmTileShapes shape;
    shape.push_back(tile);
    const auto pieces = [](std::int64_t length, int piece) {
      return std::vector<float>(4, static_cast<float>(pieces_of(static_cast<double>(length), piece)));
    };
    const auto rows = pieces(p.work.m, tile.m), columns = pieces(p.work.n, tile.n), steps = pieces(p.work.k, tile.k);
    const GemmTilings on{rows.data(), columns.data(), steps.data()};
    std::array<float, 4> seconds{};
    floor.whole(shape, on, seconds.data());
    whole.add(seconds[0], law.seconds(tile, 1));
    for (const bool place : {false, true}) {
      if (place && GetParam() == GemmWork::Family::wgmma) continue;
      tile.stream_k = place;
      const std::array<float, 4> tried{2, 3, 8, 16};
      std::array<float, 4> any{};
      floor.splits(shape, on, {.few = 16, .most = 16}, place, any.data());
      floor.split(shape, on, 0, tried.data(), place, seconds.data());
      for (std::size_t s = 0; s < 4; ++s)
        ASSERT_LE(any[0], law.seconds(tile, static_cast<int>(tried[s])))
            << "RIDGELINE_TEST_SEED=" << seed << ", draw " << i;
      for (std::size_t s = 0; s < 4; ++s)
        (place ? in_place : apart).add(seconds[s], law.seconds(tile, static_cast<int>(tried[s])));
    }
  }
  // Four rounded maxima of two follow each other in a tiled k-step; of the others more is exact.
  const double share = GetParam() == GemmWork::Family::mma_sync ? 0.84 : 0.9;
  for (const Ratios* r : {&whole, &apart, &in_place}) {
    EXPECT_LE(r->most, 1.0) << "RIDGELINE_TEST_SEED=" << seed;
    EXPECT_GE(r->near, share * r->all) << "RIDGELINE_TEST_SEED=" << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(of, StatedFloors,
                         ::testing::Values(GemmWork::Family::wgmma, GemmWork::Family::mma_sync,
                                           GemmWork::Family::simt));

}  // namespace
}  // namespace ridgeline

// A product's traffic against the same tiles walked line by line; what rasters and policies change.
#include "sim/hierarchy/traffic.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "sim/hardware/load_gpu.h"
#include "sim/hierarchy/line_cache.h"
#include "sim/hierarchy/tile_raster.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

/// A small chip: 8 SMs, one partition, plain LRU.
Gpu small_chip(double capacity) {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  gpu.sm.count = 8;
  gpu.l2.capacity = Bytes{capacity};
  gpu.l2.partitions = 1;
  gpu.l2.dirty_fraction = 1.0;
  gpu.l2.replacement = L2Replacement::lru;
  return gpu;
}

GemmWork product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.family = GemmWork::Family::wgmma,
          .type = DType::bf16,
          .m = m,
          .n = n,
          .k = k,
          .tile_m = 64,
          .tile_n = 64,
          .tile_k = 64};
}

KernelLaunch launch_of(const GemmWork& work) {
  KernelLaunch launch;
  const auto bytes = [](std::int64_t a, std::int64_t b) { return 2.0 * static_cast<double>(a * b); };
  launch.work = work;
  launch.reads = {{0, bytes(work.m, work.k)}, {1, bytes(work.n, work.k)}};
  launch.writes = {{2, bytes(work.m, work.n)}};
  launch.reads[0].requested = launch.reads[0].bytes * static_cast<double>(work.n / work.tile_n);
  launch.reads[1].requested = launch.reads[1].bytes * static_cast<double>(work.m / work.tile_m);
  return launch;
}

TrafficStep simulate(const GemmWork& work, const Gpu& gpu) {
  const KernelLaunch launch = launch_of(work);
  std::vector<Operand> operands;
  for (std::uint32_t i = 0; i < 3; ++i) operands.push_back({i, 0});
  AccessPlaces places;
  L2Cache l2(gpu.l2);
  return simulate_traffic(launch, places.of(launch, operands), gpu, l2).total();
}

/// The same product on lines: cohorts of eight tiles in step, each k-step of each tile touching its two panels.
std::uint64_t read_by_lines(const GemmWork& work, const Gpu& gpu) {
  LineCache cache(static_cast<std::uint64_t>(gpu.l2.capacity.value()), 16, L2Replacement::lru, L2Writes::back);
  const TileRaster raster(work, gpu);
  const auto row_bytes = static_cast<std::uint64_t>(2 * work.k);
  const std::uint64_t b_base = std::uint64_t{1} << 30, c_base = std::uint64_t{1} << 31;
  const auto panel = [&](std::uint64_t base, std::int64_t index, std::int64_t side, std::int64_t step) {
    for (std::int64_t row = index * side; row < (index + 1) * side; ++row)
      cache.access(
          base + static_cast<std::uint64_t>(row) * row_bytes + static_cast<std::uint64_t>(2 * step * work.tile_k),
          static_cast<std::uint64_t>(2 * work.tile_k), false);
  };
  for (std::int64_t first = 0; first < raster.tiles(); first += gpu.sm.count) {
    const std::int64_t last = std::min<std::int64_t>(raster.tiles(), first + gpu.sm.count);
    for (std::int64_t step = 0; step < work.k / work.tile_k; ++step)
      for (std::int64_t tile = first; tile < last; ++tile) {
        std::vector<std::int64_t> a, b;
        raster.panels(tile, tile + 1, a, b);
        panel(0, a[0], work.tile_m, step);
        panel(b_base, b[0], work.tile_n, step);
      }
    const std::uint64_t tile_bytes = 2 * static_cast<std::uint64_t>(work.tile_m * work.tile_n);
    for (std::int64_t tile = first; tile < last; ++tile)
      cache.access(c_base + static_cast<std::uint64_t>(tile) * tile_bytes, tile_bytes, true);
  }
  return cache.read_misses();
}

TEST(Traffic, AProductReadsWhatTheSameTilesReadLineByLine) {
  for (const double capacity : {1.0 * kMiB, 4.0 * kMiB, 32.0 * kMiB})
    for (const GemmWork& work : {product(1024, 1024, 512), product(512, 2048, 1024), product(2048, 512, 1024)}) {
      const Gpu gpu = small_chip(capacity);
      const auto lines = static_cast<double>(read_by_lines(work, gpu));
      EXPECT_NEAR(simulate(work, gpu).dram_read / lines, 1.0, 0.15) << capacity << ' ' << work.m << ' ' << work.n;
    }
}

TEST(Traffic, OperandsThatFitAreReadOnceWhateverTheRaster) {
  Gpu gpu = small_chip(32.0 * kMiB);
  const GemmWork work = product(1024, 1024, 1024);
  for (const TileOrder order : {TileOrder::automatic, TileOrder::rows, TileOrder::columns, TileOrder::groups}) {
    gpu.launch.tile_order = order;
    EXPECT_DOUBLE_EQ(simulate(work, gpu).dram_read, 4.0 * 1024 * 1024);
  }
}

TEST(Traffic, TheRasterDecidesWhichOperandIsReadAgain) {
  Gpu gpu = small_chip(2.5 * kMiB);
  const GemmWork tall = product(8192, 512, 1024);  // A 16 MiB, which does not fit; B 1 MiB, which does
  gpu.launch.tile_order = TileOrder::rows;
  const double along_rows = simulate(tall, gpu).dram_read;
  gpu.launch.tile_order = TileOrder::columns;
  EXPECT_GT(simulate(tall, gpu).dram_read, 3.0 * along_rows);
}

TEST(Traffic, TwiceTheL2NeverReadsMore) {
  const GemmWork work = product(2048, 2048, 1024);
  double before = simulate(work, small_chip(0.5 * kMiB)).dram_read;
  for (const double capacity : {1.0, 2.0, 4.0, 8.0, 16.0}) {
    const double now = simulate(work, small_chip(capacity * kMiB)).dram_read;
    EXPECT_LE(now, 1.02 * before) << capacity;
    before = now;
  }
}

TEST(Traffic, WithoutAnL2TilesFetchEverythingTheyAskFor) {
  Gpu gpu = small_chip(4.0 * kMiB);
  const GemmWork work = product(1024, 1024, 512);
  const double with = simulate(work, gpu).dram_read;
  gpu.l2.replacement = L2Replacement::none;
  const TrafficStep without = simulate(work, gpu);
  EXPECT_GT(without.dram_read, 3.0 * with);
  EXPECT_DOUBLE_EQ(without.dram_read, without.l2_read);
  EXPECT_DOUBLE_EQ(without.hits, 0.0);
}

// Its steps alone would take gigabytes and minutes.
TEST(Traffic, WhatWouldNotEndIsRefusedBeforeItBegins) {
  KernelLaunch launch = launch_of(product(1 << 21, 1 << 21, 1 << 20));
  launch.name = "gemm";
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  AccessPlaces places;
  const std::vector<Operand> operands{{0, 0}, {1, 0}, {2, 0}};
  L2Cache l2(gpu.l2);
  const auto begin = std::chrono::steady_clock::now();
  try {
    (void)simulate_traffic(launch, places.of(launch, operands), gpu, l2);
    ADD_FAILURE() << "it ended";
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).find("gemm would be simulated in "), 0u) << error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

}  // namespace
}  // namespace ridgeline

// A launch explained: its tiles, what an SM holds of it, and what each resource would take alone.
#include "sim/report/json/launch_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/timing/kernel_profile.h"

namespace ridgeline {
namespace {

using nlohmann::json;

struct LaunchReport : ::testing::Test {
  Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  KernelKind kind;

  void SetUp() override {
    kind.shape = "a shape";
    KernelLaunch& launch = kind.launch;
    launch.name = "a kernel";
    launch.grid = {7, 3, 2}, launch.threads_per_block = 256, launch.registers_per_thread = 64;
    launch.shared_bytes_per_block = 49152;
    launch.pipe = Pipe::fp32, launch.flops = 4e9;
    launch.reads = {{.operand = 0, .bytes = 1000, .requested = 5000}, {.operand = 1, .bytes = 300}};
    launch.writes = {{.operand = 2, .bytes = 70}};
    kind.each.time = Seconds{3e-4}, kind.each.limiter = Limiter::l2;
    kind.each.waves = 0.4, kind.each.occupancy = 0.2, kind.each.math_utilization = 0.6;
    kind.each.dram_read_bytes = 900, kind.each.dram_write_bytes = 60;
    kind.each.l2_bytes = 5100, kind.each.l2_hit_rate = 0.8;
  }
  [[nodiscard]] json told() const { return json(launch_json(kind, gpu)); }
};

// 256 threads of 64 registers are 16,384 of 65,536: four blocks; 48 KiB and the driver's one of 164: three.
TEST_F(LaunchReport, WhatAnSmHolds) {
  const json out = told();
  EXPECT_EQ(out["name"], "a kernel");
  EXPECT_EQ(out["shape"], "a shape");
  EXPECT_EQ(out["time_s"], 3e-4);
  EXPECT_EQ(out["limiter"], "l2");
  EXPECT_EQ(out["grid"], json({7, 3, 2}));
  EXPECT_EQ(out["blocks"], 42.0);
  EXPECT_EQ(out["threads"], 256);
  EXPECT_EQ(out["registers"], 64);
  EXPECT_EQ(out["shared_bytes"], 49152);
  EXPECT_EQ(out["sm_count"], 108);
  EXPECT_EQ(out["waves"], 0.4);
  EXPECT_EQ(out["math_utilization"], 0.6);
  EXPECT_EQ(out["occupancy"], (json{{"blocks_per_sm", 3},
                                    {"warps_per_block", 8},
                                    {"warps_per_sm", 24},
                                    {"most_warps_per_sm", 64},
                                    {"limit", "shared_memory"},
                                    {"of_kernel", 0.2}}));
  EXPECT_FALSE(out.contains("clock_hz") || out.contains("profile"));
}

// Threads load 5000, 300 and 70 bytes; the L2 is asked for 5100 of them.
TEST_F(LaunchReport, TrafficAtEachLevel) {
  EXPECT_EQ(told()["traffic"], (json{{"operands_read_bytes", 1300.0},
                                     {"operands_written_bytes", 70.0},
                                     {"loaded_bytes", 5370.0},
                                     {"l2_bytes", 5100.0},
                                     {"l2_hit_rate", 0.8},
                                     {"dram_read_bytes", 900.0},
                                     {"dram_write_bytes", 60.0}}));
  MemoryBoundWork work;
  work.reread_bytes = 630;
  kind.launch.work = work;
  EXPECT_EQ(told()["traffic"]["loaded_bytes"], 6000.0);
  kind.each.l2_bytes = 7000;
  EXPECT_EQ(told()["traffic"]["loaded_bytes"], 7000.0) << "no less than the L2 was asked for";
}

// Each term is its amount over its peak.
TEST_F(LaunchReport, WhatEachResourceWouldTakeAlone) {
  const json terms = told()["terms"];
  ASSERT_EQ(terms.size(), 4U);
  const double l1 = 108 * gpu.sm.shared_bandwidth.value() * gpu.clock.sustained.value();
  const std::tuple<const char*, const char*, double, double> expected[] = {
      {"arithmetic", "FLOP", 4e9, 2.0 * 64 * 108 * gpu.clock.boost.value()},
      {"DRAM", "B", 960, gpu.dram.bandwidth.value()},
      {"L2", "B", 5100, gpu.l2.read_bandwidth.value()},
      {"L1 and shared memory", "B", 5370, l1}};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& [name, unit, amount, rate] = expected[i];
    EXPECT_EQ(terms[i]["name"], name);
    EXPECT_EQ(terms[i]["unit"], unit);
    EXPECT_EQ(terms[i]["amount"], amount);
    EXPECT_NEAR(terms[i]["rate"].get<double>(), rate, 1e-9 * rate) << name;
    EXPECT_NEAR(terms[i]["time_s"].get<double>(), amount / rate, 1e-9 * amount / rate) << name;
  }
  kind.launch.flops = 0;
  EXPECT_EQ(told()["terms"].size(), 3U) << "nothing to do takes no term";
}

// 1000 rows in tiles of 128 are 8, 300 columns in tiles of 64 are 5: 2 x 8 x 5 in three splits.
TEST_F(LaunchReport, TilesOfAProduct) {
  GemmWork work;
  work.batch = 2, work.m = 1000, work.n = 300, work.k = 512;
  work.tile_m = 128, work.tile_n = 64, work.tile_k = 32, work.stages = 4, work.split_k = 3;
  work.cluster_m = 2, work.cluster_n = 1;
  kind.launch.work = work;
  json tiles = told()["tiles"];
  EXPECT_TRUE(tiles["family"].is_string());
  tiles.erase("family");
  EXPECT_EQ(tiles, (json{{"kind", "matrix product"},
                         {"batch", 2},
                         {"m", 1000},
                         {"n", 300},
                         {"k", 512},
                         {"tile", {128, 64, 32}},
                         {"stages", 4},
                         {"split_k", 3},
                         {"cluster", {2, 1}},
                         {"rows", 8},
                         {"columns", 5},
                         {"count", 240}}));
}

// Forward, blocks own queries: 200 in tiles of 64 are 4; backward keys: 333 in tiles of 128 are 3.
TEST_F(LaunchReport, TilesOfAttentionAreOfWhatABlockOwns) {
  AttentionWork work;
  work.batch = 2, work.heads = 5, work.seq_q = 200, work.seq_k = 333, work.head_dim = 80, work.causal = true;
  work.tile_q = 64, work.tile_k = 128, work.splits = 2;
  work.part = AttentionWork::Part::forward;
  kind.launch.work = work;
  json expected{{"kind", "attention"}, {"batch", 2},     {"heads", 5},        {"queries", 200}, {"keys", 333},
                {"head_dim", 80},      {"causal", true}, {"tile", {64, 128}}, {"splits", 2},    {"count", 80}};
  EXPECT_EQ(told()["tiles"], expected);
  work.part = AttentionWork::Part::backward;
  kind.launch.work = work;
  expected["count"] = 60;
  EXPECT_EQ(told()["tiles"], expected);
}

// Tiles of 64: whole ones, one element less and one more. Without a tile there is one piece.
TEST_F(LaunchReport, ATileThatIsNotFullCountsAsOne) {
  GemmWork work;
  work.batch = 1, work.n = 7, work.k = 16, work.tile_n = 1, work.tile_k = 16, work.split_k = 1;
  const auto rows = [&](std::int64_t m, int tile) {
    work.m = m, work.tile_m = tile;
    kind.launch.work = work;
    EXPECT_EQ(told()["tiles"]["columns"], 7) << "tiles of one";
    return told()["tiles"]["rows"].get<int>();
  };
  EXPECT_EQ(rows(127, 64), 2);
  EXPECT_EQ(rows(128, 64), 2);
  EXPECT_EQ(rows(129, 64), 3);
  EXPECT_EQ(rows(1, 64), 1);
  EXPECT_EQ(rows(129, 0), 1);
}

// The work of a product of 8-bit values with scales counts them in pairs; a person counts each.
TEST_F(LaunchReport, ProductsOfPairsCountEveryValue) {
  GemmWork work;
  work.batch = 3, work.m = 64, work.n = 96, work.k = 40, work.tile_m = 32, work.tile_n = 48, work.tile_k = 20;
  work.split_k = 5;
  kind.launch.work = work;
  EXPECT_EQ(told()["tiles"]["k"], 40);
  EXPECT_EQ(told()["tiles"]["tile"], json({32, 48, 20}));
  for (const Scaling scaling : {Scaling::tensor_fast, Scaling::tensor, Scaling::rows_fast}) {
    work.scaling = scaling;
    kind.launch.work = work;
    EXPECT_EQ(told()["tiles"]["k"], 80);
    EXPECT_EQ(told()["tiles"]["tile"], json({32, 48, 40}));
    EXPECT_EQ(told()["tiles"]["count"], 3 * 2 * 2 * 5);
  }
}

// Of packed sequences each has tiles of its own: 64, 65 and 1 in tiles of 64 are 1, 2 and 1; of 128 one each.
TEST_F(LaunchReport, TilesOfPackedSequencesAreOfEach) {
  AttentionWork work;
  work.batch = 2, work.heads = 5, work.seq_q = 200, work.seq_k = 333, work.head_dim = 80;
  work.tile_q = 64, work.tile_k = 128, work.splits = 3;
  work.lengths.list = std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{64, 65, 1});
  work.part = AttentionWork::Part::forward;
  kind.launch.work = work;
  EXPECT_EQ(told()["tiles"]["count"], 2 * 5 * 4 * 3);
  work.part = AttentionWork::Part::backward;
  kind.launch.work = work;
  EXPECT_EQ(told()["tiles"]["count"], 2 * 5 * 3 * 3);
}

TEST_F(LaunchReport, WhatIsBoundByMemoryAndWhatCostsAlikeHaveNoTiles) {
  MemoryBoundWork sweep;
  sweep.elements = 4096, sweep.iterations = 4;
  kind.launch.work = sweep;
  EXPECT_EQ(told()["tiles"], (json{{"kind", "memory-bound"}, {"elements", 4096}, {"iterations", 4}}));
  FixedWork fixed;
  fixed.bytes = 512;
  kind.launch.work = fixed;
  EXPECT_EQ(told()["tiles"]["kind"], "fixed cost");
  EXPECT_EQ(told()["tiles"]["bytes"], 512);
}

TEST_F(LaunchReport, AClockAndAProfileWhereThereAre) {
  kind.each.clock = Hertz{1.2e9};
  auto profile = std::make_shared<KernelProfile>();
  profile->stalls = {0.4, 0.3, 0.15, 0.1, 0.05};
  profile->waves = 2.5, profile->tail_share = 0.07, profile->pipe_active = 0.66;
  profile->l2_bandwidth = 3e12, profile->l2_share = 0.51, profile->dram_bandwidth = 1e12, profile->dram_share = 0.49;
  kind.each.profile = profile;
  const json out = told();
  EXPECT_EQ(out["clock_hz"], 1.2e9);
  EXPECT_EQ(out["profile"]["stalls"], (json{{"long_scoreboard", 0.4},
                                            {"math_pipe_throttle", 0.3},
                                            {"mio_throttle", 0.15},
                                            {"barrier", 0.1},
                                            {"drain", 0.05}}));
  EXPECT_EQ(out["profile"]["waves_per_sm"], 2.5);
  EXPECT_EQ(out["profile"]["tail_share"], 0.07);
  EXPECT_EQ(out["profile"]["pipe_active"], 0.66);
  EXPECT_EQ(out["profile"]["l2_bandwidth"], 3e12);
  EXPECT_EQ(out["profile"]["l2_throughput"], 0.51);
  EXPECT_EQ(out["profile"]["dram_bandwidth"], 1e12);
  EXPECT_EQ(out["profile"]["dram_throughput"], 0.49);
}

}  // namespace
}  // namespace ridgeline

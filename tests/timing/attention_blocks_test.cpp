// Tiles that a fused attention kernel works on, counted by hand, and what it writes.
#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"
#include "sim/timing/analytic_engine.h"
#include "sim/timing/attention/attention_law.h"
#include "sim/workload/op.h"

namespace ridgeline {
namespace {

AttentionWork work(bool causal, AttentionWork::Part part = AttentionWork::Part::forward) {
  return {.part = part,
          .type = DType::bf16,
          .batch = 2,
          .heads = 3,
          .seq_q = 512,
          .seq_k = 512,
          .head_dim = 64,
          .causal = causal,
          .tile_q = 128,
          .tile_k = 128};
}
AttentionBlocks blocks_of(const AttentionWork& work) {
  return attention_blocks(work, load_gpu("nvidia-h200-sxm-141gb"), attention_constants(attention_class_of(work)));
}

// Four by four tiles of each of six heads; under a causal mask those on the diagonal and below it.
TEST(AttentionBlocks, ACausalMaskLeavesTheDiagonalAndWhatIsBelow) {
  EXPECT_DOUBLE_EQ(blocks_of(work(false)).products, 6 * 16);
  EXPECT_DOUBLE_EQ(blocks_of(work(true)).products, 6 * (1 + 2 + 3 + 4));
  EXPECT_DOUBLE_EQ(blocks_of(work(true, AttentionWork::Part::backward)).products, 6 * (4 + 3 + 2 + 1));
}

TEST(AttentionBlocks, LaterQueriesWalkOverMoreKeys) {
  const AttentionBlocks blocks = blocks_of(work(true));
  ASSERT_EQ(blocks.tiles.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_GE(blocks.tiles[i], blocks.tiles[i - 1] + 1.0) << i;
  EXPECT_GE(blocks.tiles[0], 1.0);
}

// Queries that come 256 positions after the first key see two more tiles each.
TEST(AttentionBlocks, QueriesBehindAPrefixSeeItWhole) {
  AttentionWork later = work(true);
  later.seq_q = 256;
  EXPECT_DOUBLE_EQ(blocks_of(later).products, 6 * (3 + 4));
  later.part = AttentionWork::Part::backward;  // three blocks of keys that both tiles of queries see, one that one does
  EXPECT_DOUBLE_EQ(blocks_of(later).products, 6 * (2 + 2 + 2 + 1));
}

TEST(AttentionTraffic, WhatMissesIsReadAndWritten) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  KernelLaunch launch;
  launch.work = work(false);
  launch.grid = {4, 6, 1};
  launch.pipe = Pipe::tensor_wgmma;
  launch.type = DType::bf16;
  launch.reads = {{0, 3e6}, {1, 2e6}};
  launch.writes = {{2, 1e6}};
  const AnalyticEngine engine(gpu);
  const KernelTime cold = engine.time(launch, std::vector{0.0, 0.0, 0.0});
  EXPECT_GE(cold.dram_read_bytes, 5e6);
  EXPECT_DOUBLE_EQ(cold.dram_write_bytes, 1e6);
  const KernelTime held = engine.time(launch, std::vector{1.0, 1.0, 1.0});
  EXPECT_LT(held.dram_read_bytes, cold.dram_read_bytes);
  EXPECT_DOUBLE_EQ(held.dram_write_bytes, 0.0);
}

AttentionWork flash(int tile_q, std::int64_t head_dim, std::int64_t seq) {
  AttentionWork result = work(true);
  result.backend = static_cast<int>(AttentionBackend::flash);
  result.tile_q = tile_q, result.tile_k = 64;
  result.head_dim = head_dim;
  result.seq_q = result.seq_k = seq;
  return result;
}

// Half of the tensor cores' rate hides more of what a tile waits for: it costs more than nothing and less than twice.
TEST(AttentionBlocks, SlowerTensorCoresHideMoreOfATile) {
  Gpu gpu = load_gpu("nvidia-rtx-a6000");
  const AttentionConstants& constants = attention_constants(AttentionClass::flash_forward);
  const AttentionBlocks full = attention_blocks(flash(64, 128, 512), gpu, constants);
  gpu.sm.rates.tensor_bf16 /= 2.0;
  const AttentionBlocks half = attention_blocks(flash(64, 128, 512), gpu, constants);
  EXPECT_DOUBLE_EQ(half.busy, 2.0 * full.busy);
  EXPECT_DOUBLE_EQ(half.waits, full.waits);
  EXPECT_GT(half.tile(2.0), 1.2 * full.tile(2.0));
  EXPECT_LT(half.tile(2.0) - full.tile(2.0), 0.9 * (half.busy - full.busy) * 2.0);
  for (const AttentionBlocks& one : {full, half}) {
    EXPECT_GE(one.tile(2.0), 2.0 * one.busy);
    EXPECT_LE(one.tile(2.0), 2.0 * (one.busy + one.waits) + one.latency);
  }
}

// Warps of 16 rows read the operand that they do not own twice as often a row as those of 32, and spill no registers
// where the sequence is no multiple of the tile.
TEST(AttentionBlocks, WarpsOfFewRowsReadMoreAndSpillNothing) {
  EXPECT_EQ(flash_forward_warps(64, 128), 4);
  EXPECT_EQ(flash_forward_warps(128, 128), 4);
  EXPECT_EQ(flash_forward_warps(128, 192), 8);
  const Gpu gpu = load_gpu("nvidia-rtx-a6000");
  AttentionConstants constants = attention_constants(AttentionClass::flash_forward);
  constants.softmax_operations = 0.0;
  constants.wide.tile_cycles = 0.0;
  const AttentionBlocks small = attention_blocks(flash(64, 128, 512), gpu, constants),
                        large = attention_blocks(flash(128, 128, 512), gpu, constants);
  EXPECT_DOUBLE_EQ(2.0 * small.math, large.math);
  EXPECT_DOUBLE_EQ(small.waits, large.waits);
  constants.spilled_masked += 1.0;
  const AttentionBlocks uneven = attention_blocks(flash(64, 128, 500), gpu, constants),
                        spilled = attention_blocks(flash(128, 128, 500), gpu, constants);
  EXPECT_DOUBLE_EQ(uneven.tiles.back(), small.tiles.back());
  EXPECT_GT(spilled.tiles.back(), large.tiles.back() + 1.0);
}

}  // namespace
}  // namespace ridgeline

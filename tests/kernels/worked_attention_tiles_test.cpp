// Tiles of fused attention as the launch templates of its libraries have them, by head dimension and generation of the
// chip (flash_fwd_launch_template.h and flash_bwd_launch_template.h of FlashAttention-2, kernel_forward.h and
// kernel_backward.h of PyTorch's memory-efficient attention), and what may run beside a split forward pass.
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/kernels/attention/attention_tiles.h"
#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_attention_tiles {
namespace {

using enum AttentionBackend;

Gpu chip_of(int major, int minor) {
  Gpu gpu = testing_support::made_up_chip();
  gpu.compute_major = major, gpu.compute_minor = minor;
  return gpu;
}
Attention heads_of(AttentionBackend backend, std::int64_t head_dim, DType type = DType::bf16) {
  return {.backend = backend,
          .type = type,
          .batch = 2,
          .heads = 3,
          .kv_heads = 3,
          .seq_q = 500,
          .seq_k = 600,
          .head_dim = head_dim};
}
/// "queries x keys of a head, threads, registers, shared memory"
std::string tile_text(const Attention& op, const Gpu& gpu) {
  const AttentionTile tile = attention_tile(op, gpu);
  return fmt::format("{}x{} of {}, {} {} {}", tile.q, tile.k, tile.head_dim, tile.threads, tile.registers,
                     tile.shared_bytes);
}
std::string tile_text(Attention op, const Gpu& gpu, bool backward, bool causal = false, bool dropout = false) {
  op.backward = backward, op.causal = causal, op.dropout = dropout;
  return tile_text(op, gpu);
}

/// SMs of 100 KB of shared memory, of 164, of 228.
const std::vector<Gpu> kSmall{chip_of(8, 6), chip_of(8, 9), chip_of(12, 0), chip_of(8, 7)}, kMiddle{chip_of(8, 0)},
    kLarge{chip_of(9, 0), chip_of(10, 0), chip_of(11, 0)};

/// Head dimensions that take one kernel, and its tiles forward: plain, causal, with dropout, with both.
struct ForwardRow {
  std::int64_t from, to;
  std::array<std::string_view, 4> tiles;
};
template <class Rows>
void expect_forward(const std::vector<Gpu>& chips, const Rows& rows) {
  for (const Gpu& gpu : chips)
    for (const ForwardRow& row : rows)
      for (const std::int64_t head_dim : {row.from, row.to})
        for (std::size_t i = 0; i < 4; ++i)
          EXPECT_EQ(tile_text(heads_of(flash, head_dim), gpu, false, i % 2 == 1, i >= 2), row.tiles[i])
              << gpu.compute_major << '.' << gpu.compute_minor << " d " << head_dim << ' ' << i;
}

// Shared memory holds the queries and twice the keys: (128 + 2 x 128) x 32 x 2 bytes are 24,576.
constexpr std::array kShortHeads{ForwardRow{1,
                                            32,
                                            {"128x128 of 32, 128 255 24576", "128x128 of 32, 128 255 24576",
                                             "128x128 of 32, 128 255 24576", "128x128 of 32, 128 255 24576"}},
                                 ForwardRow{33,
                                            64,
                                            {"128x128 of 64, 128 255 49152", "128x128 of 64, 128 255 49152",
                                             "128x64 of 64, 128 255 32768", "128x64 of 64, 128 255 32768"}}};
TEST(WorkedAttentionTiles, flash_forward_takes_128_queries_of_short_heads_on_every_chip) {
  expect_forward(kSmall, kShortHeads);
  expect_forward(kMiddle, kShortHeads);
  expect_forward(kLarge, kShortHeads);
}

TEST(WorkedAttentionTiles, flash_forward_takes_fewer_queries_or_keys_where_shared_memory_is_small) {
  expect_forward(kSmall, std::array{ForwardRow{65,
                                               96,
                                               {"128x64 of 96, 128 255 49152", "64x64 of 96, 128 255 36864",
                                                "128x64 of 96, 128 255 49152", "64x64 of 96, 128 255 36864"}},
                                    ForwardRow{97,
                                               128,
                                               {"128x32 of 128, 128 255 49152", "64x64 of 128, 128 255 49152",
                                                "128x32 of 128, 128 255 49152", "128x32 of 128, 128 255 49152"}},
                                    ForwardRow{129,
                                               192,
                                               {"64x64 of 192, 128 255 73728", "64x64 of 192, 128 255 73728",
                                                "64x64 of 192, 128 255 73728", "64x64 of 192, 128 255 73728"}},
                                    ForwardRow{193,
                                               256,
                                               {"64x64 of 256, 128 255 98304", "64x64 of 256, 128 255 98304",
                                                "64x64 of 256, 128 255 98304", "64x64 of 256, 128 255 98304"}}});
}

TEST(WorkedAttentionTiles, flash_forward_takes_two_blocks_of_the_longest_heads_where_shared_memory_is_large) {
  constexpr std::array kLongHeads{ForwardRow{65,
                                             96,
                                             {"128x64 of 96, 128 255 49152", "128x64 of 96, 128 255 49152",
                                              "128x64 of 96, 128 255 49152", "128x64 of 96, 128 255 49152"}},
                                  ForwardRow{97,
                                             128,
                                             {"128x64 of 128, 128 255 65536", "128x64 of 128, 128 255 65536",
                                              "128x32 of 128, 128 255 49152", "128x32 of 128, 128 255 49152"}},
                                  ForwardRow{129,
                                             192,
                                             {"128x64 of 192, 256 255 98304", "128x64 of 192, 256 255 98304",
                                              "128x64 of 192, 256 255 98304", "128x64 of 192, 256 255 98304"}}};
  expect_forward(kMiddle, kLongHeads);
  expect_forward(kLarge, kLongHeads);
  expect_forward(kMiddle, std::array{ForwardRow{193,
                                                256,
                                                {"128x64 of 256, 256 255 131072", "128x64 of 256, 256 255 131072",
                                                 "128x64 of 256, 256 255 131072", "128x64 of 256, 256 255 131072"}}});
  expect_forward(kLarge, std::array{ForwardRow{193,
                                               256,
                                               {"64x64 of 256, 128 255 98304", "64x64 of 256, 128 255 98304",
                                                "64x64 of 256, 128 255 98304", "64x64 of 256, 128 255 98304"}}});
}

/// Head dimensions, then the tile on chips of little shared memory, and on those of more.
struct BackwardRow {
  std::int64_t from, to;
  std::string_view small, large;
};
TEST(WorkedAttentionTiles, flash_backward_takes_256_threads) {
  for (const BackwardRow& row : {BackwardRow{1, 32, "128x128 of 32, 256 255 92160", "128x128 of 32, 256 255 98304"},
                                 BackwardRow{33, 64, "64x128 of 64, 256 255 92160", "128x128 of 64, 256 255 147456"},
                                 BackwardRow{65, 96, "64x128 of 96, 256 255 92160", "64x128 of 96, 256 255 94208"},
                                 BackwardRow{97, 128, "64x64 of 128, 256 255 92160", "64x128 of 128, 256 255 147456"},
                                 BackwardRow{129, 192, "64x64 of 192, 256 255 92160", "64x64 of 192, 256 255 139264"},
                                 BackwardRow{193, 256, "64x64 of 256, 256 255 92160", "64x64 of 256, 256 255 180224"}})
    for (const std::int64_t head_dim : {row.from, row.to}) {
      for (const Gpu& gpu : kSmall) EXPECT_EQ(tile_text(heads_of(flash, head_dim), gpu, true), row.small);
      for (const Gpu& gpu : kMiddle) EXPECT_EQ(tile_text(heads_of(flash, head_dim), gpu, true), row.large);
      for (const Gpu& gpu : kLarge) EXPECT_EQ(tile_text(heads_of(flash, head_dim), gpu, true), row.large);
    }
}

TEST(WorkedAttentionTiles, cudnn_takes_two_warpgroups_and_a_producer) {
  struct Row {
    std::int64_t from, to;
    std::string_view forward, backward;
  };
  const Gpu gpu = chip_of(9, 0);
  for (const Row& row : {Row{1, 64, "128x128 of 64, 384 168 134144", "64x128 of 64, 384 168 152576"},
                         Row{65, 128, "128x128 of 128, 384 168 224256", "64x128 of 128, 384 168 216064"},
                         Row{129, 192, "128x128 of 192, 384 168 224256", "64x64 of 192, 384 168 232448"},
                         Row{193, 256, "128x128 of 256, 384 168 224256", "64x64 of 256, 384 168 232448"}})
    for (const std::int64_t head_dim : {row.from, row.to}) {
      EXPECT_EQ(tile_text(heads_of(cudnn, head_dim), gpu, false), row.forward);
      EXPECT_EQ(tile_text(heads_of(cudnn, head_dim), gpu, true), row.backward);
    }
  EXPECT_THROW(tile_text(heads_of(cudnn, 257), gpu, false), std::invalid_argument);
  Gpu without = gpu;
  without.sm.warpgroup_mma = false;
  EXPECT_NO_THROW(tile_text(heads_of(cudnn, 128), without, false));
  EXPECT_THROW(tile_text(heads_of(cudnn, 129), without, false), std::invalid_argument);
}

TEST(WorkedAttentionTiles, efficient_attention_keeps_long_results_in_memory) {
  struct Row {
    std::int64_t from, to;
    std::string_view half, full;
  };
  for (const auto& gpu : {chip_of(7, 0), chip_of(8, 0), chip_of(8, 6), chip_of(9, 0)})
    for (const Row& row : {Row{1, 32, "64x64 of 32, 128 128 18944", "64x64 of 32, 128 168 36352"},
                           Row{33, 64, "64x64 of 64, 128 128 18944", "64x64 of 64, 128 168 36352"},
                           Row{65, 128, "64x128 of 128, 256 128 52224", "64x128 of 128, 256 244 86016"},
                           Row{129, 192, "32x128 of 192, 128 122 51200", "32x128 of 192, 128 168 76288"},
                           Row{193, 256, "32x128 of 256, 128 122 51200", "32x128 of 256, 128 168 76288"},
                           Row{257, 512, "32x128 of 512, 128 122 51200", "32x128 of 512, 128 168 76288"},
                           Row{513, 1024, "32x128 of 1024, 128 122 51200", "32x128 of 1024, 128 168 76288"}})
      for (const std::int64_t head_dim : {row.from, row.to}) {
        EXPECT_EQ(tile_text(heads_of(efficient, head_dim, DType::fp16), gpu, false), row.half);
        EXPECT_EQ(tile_text(heads_of(efficient, head_dim, DType::fp32), gpu, false), row.full);
      }
}

TEST(WorkedAttentionTiles, efficient_backward_grows_with_shared_memory) {
  struct Row {
    std::int64_t from, to;
    std::string_view half, full;
  };
  const auto expect_tiles = [](const Gpu& gpu, std::initializer_list<Row> rows) {
    for (const Row& row : rows)
      for (const std::int64_t head_dim : {row.from, row.to}) {
        EXPECT_EQ(tile_text(heads_of(efficient, head_dim, DType::bf16), gpu, true), row.half) << head_dim;
        EXPECT_EQ(tile_text(heads_of(efficient, head_dim, DType::fp32), gpu, true), row.full) << head_dim;
      }
  };
  for (const Gpu& gpu : kSmall)
    expect_tiles(gpu, {{1, 32, "64x64 of 32, 128 162 42240", "64x64 of 32, 128 232 53504"},
                       {33, 64, "64x64 of 64, 128 162 42240", "64x64 of 64, 128 232 53504"},
                       {65, 128, "64x64 of 128, 128 232 60000", "64x64 of 128, 128 232 60000"},
                       {129, 192, "64x64 of 192, 128 232 60000", "64x64 of 192, 128 232 60000"}});
  for (const Gpu& gpu : {chip_of(8, 0), chip_of(9, 0)})
    expect_tiles(gpu, {{1, 32, "64x64 of 32, 128 162 42240", "64x64 of 32, 128 232 53504"},
                       {33, 64, "64x64 of 64, 128 162 42240", "64x64 of 64, 128 232 53504"},
                       {65, 128, "128x128 of 128, 512 128 133632", "128x64 of 128, 256 224 121344"},
                       {129, 192, "128x64 of 192, 256 151 60928", "128x64 of 192, 256 224 121344"},
                       {193, 256, "128x64 of 256, 256 151 60928", "128x64 of 256, 256 224 121344"}});
  EXPECT_EQ(tile_text(heads_of(efficient, 96, DType::fp16), chip_of(7, 5), true), "64x64 of 128, 128 232 60000");
}

TEST(WorkedAttentionTiles, what_no_kernel_takes_is_refused) {
  for (const AttentionBackend backend : {flash, cudnn}) {
    EXPECT_NO_THROW(tile_text(heads_of(backend, 64, DType::fp16), chip_of(8, 0)));
    EXPECT_THROW(tile_text(heads_of(backend, 64, DType::fp32), chip_of(8, 0)), std::invalid_argument);
    EXPECT_THROW(tile_text(heads_of(backend, 64, DType::fp16), chip_of(7, 5)), std::invalid_argument);
    EXPECT_THROW(tile_text(heads_of(backend, 257), chip_of(9, 0)), std::invalid_argument);
  }
  EXPECT_THROW(tile_text(heads_of(efficient, 64), chip_of(7, 5)), std::invalid_argument) << "bf16";
  EXPECT_NO_THROW(tile_text(heads_of(efficient, 64), chip_of(8, 0)));
  EXPECT_THROW(tile_text(heads_of(efficient, 1025), chip_of(9, 0)), std::invalid_argument);
}

TEST(WorkedAttentionTiles, kernels_that_split_keys_take_64_queries) {
  const auto split = [](std::int64_t head_dim) {
    const AttentionTile tile = flash_split_tile(heads_of(flash, head_dim));
    return fmt::format("{}x{} of {}, {} {} {}", tile.q, tile.k, tile.head_dim, tile.threads, tile.registers,
                       tile.shared_bytes);
  };
  EXPECT_EQ(split(32), "64x256 of 32, 128 255 36864");
  EXPECT_EQ(split(64), "64x256 of 64, 128 255 73728");
  EXPECT_EQ(split(65), "64x128 of 96, 128 255 61440");
  EXPECT_EQ(split(128), "64x128 of 128, 128 255 81920");
  EXPECT_EQ(split(129), "64x64 of 192, 128 255 73728");
  EXPECT_EQ(split(256), "64x64 of 256, 128 255 98304");
}

/// "grid" of each form besides the one that is shown; a star where it has helpers.
std::string other_forms(const Attention& op) {
  for (const KernelLaunch& launch : lower(op, testing_support::made_up_chip(), {}).launches)
    if (std::holds_alternative<AttentionWork>(launch.work) && launch.others != nullptr) {
      std::string text = fmt::format("{}:", launch.around > 0.0 ? "*" : "");
      for (const OtherForm& form : *launch.others) {
        const auto& work = std::get<AttentionWork>(form.launch.work);
        text += fmt::format(" {}x{} {}/{}{}", work.tile_q, work.tile_k, form.launch.grid[0], work.splits,
                            form.around > 0.0 ? "*" : "");
      }
      return text;
    }
  return "";
}
// On ten SMs of two blocks: 4 blocks of 64 queries and 8 tiles of 128 keys are split in 4; whole keys in one block of
// 128 queries, or any other number that the tables of trials have up to 8.
TEST(WorkedAttentionTiles, a_split_forward_pass_may_be_split_otherwise) {
  Attention op = heads_of(flash, 128);
  op.batch = 1, op.heads = op.kv_heads = 2, op.seq_q = 100, op.seq_k = 1000;
  EXPECT_EQ(other_forms(op), "*: 128x64 1/1 64x128 4/2* 64x128 6/3* 64x128 12/6* 64x128 16/8*");
  op.seq_k = 500;  // four tiles
  EXPECT_EQ(other_forms(op), "*: 128x64 1/1 64x128 4/2* 64x128 6/3*");
  op.seq_k = 128;
  EXPECT_EQ(other_forms(op), "") << "a tile is not split";
  op.seq_q = 64, op.seq_k = 256, op.heads = op.kv_heads = 15;  // as much of 20 places as of twice as many blocks
  EXPECT_EQ(other_forms(op), ": 64x128 2/2*");
  op.heads = op.kv_heads = 16;
  EXPECT_EQ(other_forms(op), "");
  op.heads = op.kv_heads = 2, op.dropout = true;
  EXPECT_EQ(other_forms(op), "");
}

}  // namespace
}  // namespace ridgeline::worked_attention_tiles

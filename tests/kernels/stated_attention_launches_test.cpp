// Kernels of fused attention against docs/model/attention.md ("Which kernels run"): which launch follows which, the
// bytes of every operand, the blocks of the main kernel and the work of its helpers, over random shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/attention/attention_tiles.h"
#include "sim/kernels/families.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;

std::int64_t over(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
double as_double(std::int64_t x) { return static_cast<double>(x); }
const Gpu& chip() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu;
}

struct AttentionOp {
  Attention op;
  double q = 0, kv = 0, rows = 0;  ///< bytes of queries, of keys; rows of the scores
};
AttentionOp drawn_op(Draws& draws, AttentionBackend backend, bool backward) {
  AttentionOp d;
  Attention& op = d.op;
  op.backend = backend, op.backward = backward;
  op.causal = draws.index(2) == 0, op.dropout = draws.index(3) == 0;
  const bool efficient = backend == AttentionBackend::efficient;
  op.type = efficient && draws.index(2) == 0 ? DType::fp32 : draws.index(2) == 0 ? DType::bf16 : DType::fp16;
  op.batch = std::llround(draws.between(0.6, 40)) + (draws.index(10) == 0 ? 300 : 0);
  op.kv_heads = 1 + static_cast<std::int64_t>(draws.index(8));
  op.heads = op.kv_heads * (efficient || draws.index(2) == 0 ? 1 : 2 + static_cast<std::int64_t>(draws.index(3)));
  op.seq_q = op.seq_k = std::llround(draws.between(1, 3000));
  if (draws.index(3) == 0) op.seq_k = std::llround(draws.between(1, 3000));
  constexpr std::array kHeads{16, 32, 40, 64, 72, 80, 96, 128};
  op.head_dim = kHeads[draws.index(kHeads.size())];
  if (efficient && draws.index(4) == 0) op.head_dim = 256;
  op.bias = backend != AttentionBackend::flash && draws.index(3) == 0;
  op.head_major = draws.index(2) == 0;
  const double e = as_double(bytes_of(op.type));
  d.rows = as_double(op.batch * op.heads * op.seq_q);
  d.q = d.rows * as_double(op.head_dim) * e;
  d.kv = as_double(op.batch * op.kv_heads * op.seq_k * op.head_dim) * e;
  return d;
}
std::string described(std::uint64_t seed, const Attention& op) {
  return "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": " + std::to_string(op.batch) + " x " +
         std::to_string(op.heads) + "/" + std::to_string(op.kv_heads) + " x " + std::to_string(op.seq_q) + " x " +
         std::to_string(op.seq_k) + " x " + std::to_string(op.head_dim) + " type " +
         std::to_string(static_cast<int>(op.type));
}

using Moved = std::vector<std::pair<int, double>>;
Moved moved(const std::vector<Access>& accesses) {
  Moved all;
  for (const Access& access : accesses) all.emplace_back(access.operand, access.bytes);
  return all;
}
const KernelLaunch* main_of(const LoweredOp& op) {
  for (const KernelLaunch& launch : op.launches)
    if (const auto* work = std::get_if<AttentionWork>(&launch.work);
        work && work->part != AttentionWork::Part::layout_copy)
      return &launch;
  return nullptr;
}
std::string class_in(const KernelLaunch& launch) {
  return std::string(name_of(static_cast<MemoryBoundKernel>(std::get<MemoryBoundWork>(launch.work).kernel_class)));
}

/// What the main kernel of either pass is told, and its FLOPs.
void expect_main(const AttentionOp& d, const KernelLaunch& main, const AttentionTile& tile) {
  const Attention& op = d.op;
  const auto& work = std::get<AttentionWork>(main.work);
  const double scores = d.rows * as_double(op.seq_k) * (op.causal ? 0.5 : 1.0);
  EXPECT_NEAR(main.flops, (op.backward ? 10.0 : 4.0) * scores * as_double(op.head_dim), 1e-9 * main.flops);
  EXPECT_EQ(main.time_class, TimeClass::tensor_contraction);
  EXPECT_EQ(main.threads_per_block, tile.threads);
  EXPECT_EQ(main.registers_per_thread, tile.registers);
  EXPECT_EQ(main.shared_bytes_per_block, tile.shared_bytes);
  EXPECT_EQ(work.part, op.backward ? AttentionWork::Part::backward : AttentionWork::Part::forward);
  EXPECT_EQ(std::tuple(work.batch, work.heads, work.kv_heads, work.seq_q, work.seq_k),
            std::tuple(op.batch, op.heads, op.kv_heads, op.seq_q, op.seq_k));
  EXPECT_EQ(std::tuple(work.causal, work.dropout, work.bias), std::tuple(op.causal, op.dropout, op.bias));
  EXPECT_EQ(work.tile_q, tile.q);
  EXPECT_EQ(work.head_dim, op.backend == AttentionBackend::efficient ? over(op.head_dim, 32) * 32 : tile.head_dim);
  EXPECT_EQ(work.padded_head, op.backend == AttentionBackend::flash && op.head_dim != tile.head_dim);
  // A persistent kernel has a block an SM at most; others a block for each tile of what they own.
  const std::int64_t each = op.backward ? over(op.seq_k, tile.k) : over(op.seq_q, tile.q);
  if (op.backend == AttentionBackend::cudnn) {
    EXPECT_TRUE(work.persistent);
    const std::int64_t halves = tile.k == 64 ? 2 * over(op.seq_k, 128) : each;
    EXPECT_EQ(main.blocks(), as_double(std::min<std::int64_t>(chip().sm.count, halves * op.heads * op.batch)));
  } else {
    EXPECT_FALSE(work.persistent);
    EXPECT_EQ(main.blocks(), as_double(over(each, work.tiles_together) * work.splits * op.heads * op.batch));
  }
}

TEST(StatedAttentionLaunches, forward_is_one_kernel_behind_its_counters_or_a_split_and_its_combination) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  int split_ones = 0;
  for (int i = 0; i < 3000 && !HasFailure(); ++i) {
    const auto backend = static_cast<AttentionBackend>(i % 3);
    const AttentionOp d = drawn_op(draws, backend, false);
    const Attention& op = d.op;
    SCOPED_TRACE(described(seed, op));
    const LoweredOp made = lower_attention(op, chip(), Software{});
    const KernelLaunch& main = *main_of(made);
    const int splits = std::get<AttentionWork>(main.work).splits;
    std::size_t before = 0;  // random state, and counters to clear
    if (backend == AttentionBackend::cudnn) before = op.dropout ? 2 : 1;
    ASSERT_EQ(made.launches.size(), before + (splits > 1 ? 2 : 1));
    EXPECT_EQ(&main, &made.launches[before]);
    if (before > 0) {
      EXPECT_EQ(made.launches[before - 1].name, "Memset");
    }
    expect_main(d, main, splits > 1 ? flash_split_tile(op) : attention_tile(op, chip()));
    Moved reads{{0, d.q}, {1, d.kv}, {2, d.kv}};
    if (op.bias) {
      reads.emplace_back(3, as_double(op.batch * op.seq_q * op.seq_k * bytes_of(op.type)));
      EXPECT_DOUBLE_EQ(main.reads[3].requested, main.reads[3].bytes * as_double(op.heads)) << "every head reads it";
    }
    EXPECT_EQ(moved(main.reads), reads);
    const int out = op.bias ? 4 : 3;
    const Moved results{{out, d.q}, {out + 1, 4.0 * d.rows}};
    if (splits == 1) {
      EXPECT_EQ(moved(main.writes), results);
      continue;
    }
    ++split_ones;
    const double partial = 4.0 * d.rows * flash_split_tile(op).head_dim * splits;
    const KernelLaunch& combine = made.launches.back();
    EXPECT_EQ(moved(main.writes), (Moved{{Access::kTemporary, partial}}));
    EXPECT_EQ(moved(combine.reads), moved(main.writes));
    EXPECT_EQ(moved(combine.writes), results);
    EXPECT_EQ(class_in(combine), "split_combine");
    const auto& work = std::get<MemoryBoundWork>(combine.work);
    EXPECT_DOUBLE_EQ(work.iterations, splits);
    EXPECT_DOUBLE_EQ(work.elements, partial / 4.0);
    ASSERT_EQ(made.temporaries.size(), 2u);
    EXPECT_EQ(as_double(made.temporaries[0]), 4.0 * d.rows * splits);
    EXPECT_EQ(as_double(made.temporaries[1]), partial);
    ASSERT_NE(main.others, nullptr);
    EXPECT_GT(main.around, 0.0) << "the combination takes time";
  }
  EXPECT_GT(split_ones, 20);
}

/// The fewest splits within 85 % of the best use of waves, none where blocks fill 80 % of the places: tried one by one.
TEST(StatedAttentionLaunches, splits_are_the_fewest_that_use_waves_nearly_as_well_as_the_best) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 5000; ++i) {
    const double blocks = std::ceil(draws.between(1, 400));
    const int places = static_cast<int>(draws.between(8, 300)), keys = static_cast<int>(draws.between(1, 200));
    const std::string which = "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": " + std::to_string(blocks) + " " +
                              std::to_string(places) + " " + std::to_string(keys);
    int expected = 1;
    if (blocks < 0.8 * places) {
      std::vector<double> use{0.0};
      double best = 0.0;
      for (int splits = 1; splits <= std::min({128, places, keys}); ++splits) {
        const bool same = splits > 1 && over(keys, splits) == over(keys, splits - 1);  // as many tiles as with one less
        const double waves = blocks * splits / places;
        use.push_back(same ? 0.0 : waves / std::ceil(waves));
        best = std::max(best, use.back());
      }
      for (std::size_t splits = use.size() - 1; splits >= 1; --splits)
        if (use[splits] >= 0.85 * best) expected = static_cast<int>(splits);
    }
    ASSERT_EQ(flash_splits(blocks, places, keys), expected) << which;
    ASSERT_GE(most_flash_splits(blocks, places, keys), expected) << which;
  }
}

TEST(StatedAttentionLaunches, backward_is_delta_the_main_kernel_and_the_conversion_of_an_accumulator) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 600 && !HasFailure(); ++i) {
    const bool cudnn = i % 2 == 0;
    const AttentionOp d = drawn_op(draws, cudnn ? AttentionBackend::cudnn : AttentionBackend::flash, true);
    const Attention& op = d.op;
    SCOPED_TRACE(described(seed, op));
    const LoweredOp made = lower_attention(op, chip(), Software{});
    const AttentionTile tile = attention_tile(op, chip());
    const std::size_t before = cudnn ? 1 : op.head_major ? 2 : 0;
    ASSERT_GE(made.launches.size(), before + 3);
    if (cudnn) {
      EXPECT_EQ(made.launches[0].name, "Memset");
    }
    for (std::size_t k = 0; !cudnn && k < before; ++k) {  // the gradient and the result, head by head
      EXPECT_EQ(moved(made.launches[k].reads), (Moved{{k == 0 ? 0 : 4, d.q}}));
      EXPECT_EQ(moved(made.launches[k].writes), (Moved{{Access::kTemporary, d.q}}));
      EXPECT_EQ(made.launches[k].grid[0], over(std::llround(d.rows) * op.head_dim, 512));
      EXPECT_EQ(made.launches[k].time_class, TimeClass::copy);
    }
    const KernelLaunch &delta = made.launches[before], &main = made.launches[before + 1],
                       &convert = made.launches[before + 2];
    expect_main(d, main, tile);
    // cuDNN adds up fp32 numbers as they are, FlashAttention in whole tiles.
    const double accumulator =
        4.0 * (cudnn ? d.rows * as_double(op.head_dim)
                     : as_double(op.batch * op.heads * over(op.seq_q, tile.q) * tile.q) * tile.head_dim);
    EXPECT_EQ(moved(delta.reads), (Moved{{0, d.q}, {4, d.q}}));
    EXPECT_EQ(moved(delta.writes), (Moved{{Access::kTemporary, accumulator}}));
    EXPECT_EQ(moved(convert.reads), moved(delta.writes));
    const int dq = op.bias ? 7 : 6;
    EXPECT_EQ(moved(convert.writes), (Moved{{dq, d.q}}));
    const bool grouped = op.heads != op.kv_heads;
    const double expanded = d.kv * as_double(op.heads) / as_double(op.kv_heads);
    Moved reads{{1, d.q}, {2, d.kv}, {3, d.kv}, {0, d.q}};
    if (op.bias) reads.emplace_back(6, as_double(op.batch * op.seq_q * op.seq_k * bytes_of(op.type)));
    EXPECT_EQ(moved(main.reads), reads);
    EXPECT_EQ(moved(main.writes), (Moved{{Access::kTemporary, accumulator},
                                         {grouped ? Access::kTemporary : dq + 1, expanded},
                                         {grouped ? Access::kTemporary : dq + 2, expanded}}));
    // One workspace, or row sums and an accumulator in whole tiles of 128 rows behind the copies.
    std::vector<std::int64_t> held;
    const std::int64_t rows_in_tiles = op.heads * op.batch * over(op.seq_q, 128) * 128;
    if (cudnn) {
      held = {std::llround(4.0 * d.rows + accumulator + (grouped ? 2.0 * expanded : 0.0)) + 256};
    } else {
      if (op.head_major) held = {std::llround(d.q), std::llround(d.q)};
      held.insert(held.end(), {4 * rows_in_tiles, 4 * rows_in_tiles * tile.head_dim});
      if (grouped) held.insert(held.end(), {std::llround(expanded), std::llround(expanded)});
    }
    EXPECT_EQ(made.temporaries, held);
    EXPECT_EQ(class_in(delta), cudnn ? "cudnn_delta" : "flash_delta");
    EXPECT_EQ(class_in(convert), cudnn ? "cudnn_convert" : "flash_convert");
    double written = 0.0;
    for (std::size_t k = before + 3; k < made.launches.size(); ++k)
      for (const Access& write : made.launches[k].writes)
        if (write.operand > dq) written += write.bytes;
    // Gradients of shared keys are added up over the heads that used them.
    EXPECT_DOUBLE_EQ(written, grouped ? 2.0 * d.kv : 0.0);
    EXPECT_EQ(made.launches.size() > before + 3, grouped);
    for (const KernelLaunch* helper : {&delta, &convert}) {
      const auto& work = std::get<MemoryBoundWork>(helper->work);
      std::int64_t rows = tile.q, width = tile.head_dim, threads = 256;
      if (cudnn) {
        width = helper == &convert ? op.head_dim : op.head_dim <= 32 ? 32 : op.head_dim <= 64 ? 64 : 128;
        rows = helper == &convert ? 2048 / op.head_dim : 1024 / width;
        threads = 128;
      }
      EXPECT_EQ(helper->threads_per_block, threads);
      EXPECT_DOUBLE_EQ(helper->blocks(), as_double(over(op.seq_q, rows) * op.heads * op.batch));
      EXPECT_DOUBLE_EQ(work.elements, helper->blocks() * as_double(rows * width));
      EXPECT_DOUBLE_EQ(work.iterations, as_double(rows * width / threads) / 32.0);
    }
  }
}

TEST(StatedAttentionLaunches, operands_without_elements_and_heads_that_do_not_share_evenly_are_refused) {
  const Attention fine{.batch = 1, .heads = 1, .kv_heads = 1, .seq_q = 1, .seq_k = 1, .head_dim = 64};
  EXPECT_NO_THROW(lower_attention(fine, chip(), Software{}));
  for (std::int64_t Attention::*side : {&Attention::batch, &Attention::heads, &Attention::kv_heads, &Attention::seq_q,
                                        &Attention::seq_k, &Attention::head_dim}) {
    Attention empty = fine;
    empty.*side = 0;
    EXPECT_THROW(lower_attention(empty, chip(), Software{}), std::invalid_argument);
  }
  Attention shared = fine;
  shared.heads = 6;
  for (const std::int64_t kv : {1, 2, 3, 4, 5, 6}) {
    shared.kv_heads = kv;
    if (6 % kv == 0) EXPECT_NO_THROW(lower_attention(shared, chip(), Software{})) << kv;
    else EXPECT_THROW(lower_attention(shared, chip(), Software{}), std::invalid_argument) << kv;
  }
}

TEST(StatedAttentionLaunches, efficient_backward_clears_an_accumulator_unless_one_block_walks_all_keys) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 600 && !HasFailure(); ++i) {
    const AttentionOp d = drawn_op(draws, AttentionBackend::efficient, true);
    const Attention& op = d.op;
    SCOPED_TRACE(described(seed, op));
    const LoweredOp made = lower_attention(op, chip(), Software{});
    const AttentionTile tile = attention_tile(op, chip());
    const KernelLaunch& main = made.launches.back();
    const std::int64_t tiles = over(op.seq_k, tile.k), heads = op.batch * op.heads;
    const bool half = op.type != DType::fp32;
    std::int64_t together = tiles <= 2 && heads >= 256 ? tiles : 1;
    if (half && op.head_dim > 128) together = over(tiles, std::clamp<std::int64_t>(200 / heads, 1, tiles));
    EXPECT_EQ(std::get<AttentionWork>(main.work).tiles_together, together);
    EXPECT_EQ(std::get<AttentionWork>(main.work).tile_k, tile.k * together);
    EXPECT_EQ(main.grid[0], over(tiles, together));
    expect_main(d, main, tile);
    Moved reads{{0, d.q}, {1, d.q}, {2, d.kv}, {3, d.kv}, {5, 4.0 * d.rows}};
    if (half) reads.emplace_back(4, d.q);  // the forward result: these kernels work delta out themselves
    if (op.bias) reads.emplace_back(6, as_double(op.batch * op.seq_q * op.seq_k * bytes_of(op.type)));
    EXPECT_EQ(moved(main.reads), reads);
    const int dq = op.bias ? 7 : 6;
    EXPECT_EQ(moved(main.writes), (Moved{{dq, d.q}, {dq + 1, d.kv}, {dq + 2, d.kv}}));
    std::size_t others = made.launches.size() - 1;
    if (together != tiles) {  // whole tiles with a lock each, 2048 bytes a block
      const KernelLaunch& fill = made.launches[--others];
      const std::int64_t bytes =
          heads * over(op.seq_q, tile.q) * over(op.head_dim, tile.k) * (4LL * tile.q * tile.k + 16);
      EXPECT_EQ(fill.written_bytes(), as_double(bytes));
      EXPECT_EQ(fill.grid[0], over(bytes, 2048));
      EXPECT_EQ(std::get<MemoryBoundWork>(fill.work).elements, as_double(bytes) / 4.0);
      EXPECT_EQ(made.temporaries.back(), bytes);
    }
    EXPECT_EQ(others > 0, !half) << "fp32: delta by eager kernels";
  }
}

}  // namespace
}  // namespace ridgeline

// Sums, running sums and gradients of tables against docs/model/lowering.md: blocks that cover all values once, memory
// where sums are split, the kernels of a table's gradient and their bytes, over random sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/gathered_rows.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;

std::int64_t in_pieces(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
double as_number(std::int64_t x) { return static_cast<double>(x); }
const MemoryBoundWork& its_work(const KernelLaunch& launch) { return std::get<MemoryBoundWork>(launch.work); }
std::string its_class(const KernelLaunch& launch) {
  return std::string(name_of(static_cast<MemoryBoundKernel>(its_work(launch).kernel_class)));
}
const Gpu& device() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu;
}

Reduction drawn_reduction(Draws& draws) {
  Reduction op;
  op.kind = std::array{ReductionKind::sum_all, ReductionKind::sum_rows, ReductionKind::sum_cols,
                       ReductionKind::norm_all}[draws.index(4)];
  op.type = std::array{DType::fp32, DType::bf16, DType::fp16}[draws.index(3)];
  op.rows = std::llround(draws.between(0.6, 60000)), op.cols = std::llround(draws.between(0.6, 20000));
  op.rows = std::max<std::int64_t>(1, op.rows), op.cols = std::max<std::int64_t>(1, op.cols);
  if (draws.index(2) == 0) op.cols = std::int64_t{1} << draws.index(15);
  return op;
}

/// Neighbours in memory belong to different sums, or nothing is added up at all.
bool sums_columns(const Reduction& op) {
  if (op.kind == ReductionKind::sum_all || op.kind == ReductionKind::norm_all) return false;
  return op.kind == ReductionKind::sum_rows || op.cols == 1;
}

/// PyTorch's setReduceConfig (aten/src/ATen/native/cuda/Reduce.cuh), one step after the other.
struct TorchPlan {
  std::int64_t together = 1;  ///< outputs of a thread
  std::int64_t width = 1, height = 1, blocks = 1, splits = 1;
  std::int64_t values = 1;   ///< of a thread
  bool height_sums = false;  ///< threads above each other add into one output

  TorchPlan(std::int64_t outputs, std::int64_t inputs, bool along, bool half, int sms) {
    const auto power_below = [](std::int64_t x) {
      return std::int64_t{1} << static_cast<int>(std::floor(std::log2(std::max(1.0, as_number(x))) + 1e-12));
    };
    std::int64_t dim0 = along ? inputs : outputs, dim1 = along ? outputs : inputs;
    if (along && inputs >= 128) dim0 /= half ? 8 : 4;  // by vectors
    if (!along) {
      while (together < 4 && outputs % (2 * together) == 0) together *= 2;
      dim0 /= together;
    }
    const std::int64_t threads = 512 / together;
    const std::int64_t wide = std::min(power_below(dim0), threads), high = std::min(power_below(dim1), threads);
    width = std::min<std::int64_t>(wide, 32);
    height = std::min(high, threads / width);
    width = std::min(wide, threads / height);
    std::int64_t inputs_step = along ? width : 1, outputs_step = along ? 1 : width;
    values = in_pieces(inputs, inputs_step);
    height_sums = values >= 16 * height || values >= 256;
    (height_sums ? inputs_step : outputs_step) *= height;
    values = in_pieces(inputs, inputs_step);
    blocks = in_pieces(outputs / together, outputs_step);
    const std::int64_t target = sms * (2048 / (width * height));
    if (values >= 256 && blocks <= target && (height_sums || along)) {
      splits = std::max(std::min(in_pieces(target, blocks), in_pieces(values, 16)), in_pieces(values, 256));
      values = in_pieces(values, splits);
    }
  }
};

TEST(StatedSums, grids_and_passes_are_those_of_pytorchs_plan) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 4000 && !HasFailure(); ++i) {
    const Reduction op = drawn_reduction(draws);
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": kind " + std::to_string(static_cast<int>(op.kind)) +
                 ", " + std::to_string(op.rows) + " x " + std::to_string(op.cols) + " type " +
                 std::to_string(static_cast<int>(op.type)));
    const bool all = op.kind == ReductionKind::sum_all || op.kind == ReductionKind::norm_all;
    const bool down = sums_columns(op);
    const std::int64_t outputs = all                                  ? 1
                                 : op.kind == ReductionKind::sum_rows ? op.cols
                                                                      : op.rows,
                       inputs = op.rows * op.cols / outputs, e = bytes_of(op.type);
    const TorchPlan plan(outputs, inputs, !down, e == 2, device().sm.count);
    const LoweredOp made = lower_reduction(op, device(), Software{});
    const KernelLaunch& launch = made.launches.back();
    EXPECT_EQ(launch.grid[0], plan.blocks);
    EXPECT_EQ(launch.grid[1], plan.splits);
    EXPECT_EQ(launch.threads_per_block, plan.width * plan.height);
    // Sums meet in shared memory, a place for each thread and output.
    const bool meets = plan.height_sums || (!down && plan.width > 32) || plan.splits > 1;
    EXPECT_EQ(launch.shared_bytes_per_block, 16 + (meets ? 4 * plan.width * plan.height * plan.together : 0));
    if (plan.splits > 1) {
      EXPECT_EQ(made.temporaries[0], 4 * outputs * plan.splits * (down ? plan.width * plan.together : 1));
      EXPECT_EQ(its_work(launch).tail_steps,
                std::ceil(as_number(plan.splits) / as_number(down ? plan.height : plan.width * plan.height)));
    }
    // Along a row vector after vector, elsewhere four loads at once; a head and a tail, and the sum over several warps.
    double passes = as_number(plan.values) / 4.0;
    if (down) passes = std::ceil(passes);
    if (its_class(launch) == "reduce_rows") {
      const std::int64_t vector = inputs >= 128 ? 16 / e : 1;
      passes = vector > 1 ? std::ceil(as_number(plan.values) / as_number(vector)) + (inputs % vector != 0 ? 2.0 : 0.0)
                          : std::ceil(passes);
      if (plan.width > 32 && plan.splits == 1 && plan.height == 1) passes += 2.0;
    }
    EXPECT_DOUBLE_EQ(its_work(launch).iterations, passes);
  }
}

TEST(StatedSums, blocks_cover_every_value_once_and_splits_have_memory) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 4000 && !HasFailure(); ++i) {
    const Reduction op = drawn_reduction(draws);
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": kind " + std::to_string(static_cast<int>(op.kind)) +
                 ", " + std::to_string(op.rows) + " x " + std::to_string(op.cols) + " type " +
                 std::to_string(static_cast<int>(op.type)));
    const LoweredOp made = lower_reduction(op, device(), Software{});
    const KernelLaunch& launch = made.launches.back();
    const MemoryBoundWork& work = its_work(launch);
    const bool all = op.kind == ReductionKind::sum_all || op.kind == ReductionKind::norm_all;
    const bool down = sums_columns(op);  // the values of a sum lie a row apart
    const std::int64_t n = op.rows * op.cols,
                       outputs = all                                  ? 1
                                 : op.kind == ReductionKind::sum_rows ? op.cols
                                                                      : op.rows,
                       inputs = n / outputs, e = bytes_of(op.type);
    EXPECT_DOUBLE_EQ(work.elements, as_number(n));
    EXPECT_DOUBLE_EQ(launch.flops, as_number(n) * (op.kind == ReductionKind::norm_all ? 2.0 : 1.0));
    EXPECT_DOUBLE_EQ(launch.read_bytes(), as_number(n * e));
    EXPECT_DOUBLE_EQ(launch.written_bytes(), as_number(outputs * e));
    EXPECT_EQ(launch.time_class, TimeClass::normalization);
    EXPECT_EQ(its_class(launch), down ? "reduce_columns" : outputs == 1 ? "reduce_all" : "reduce_rows");
    EXPECT_LE(launch.threads_per_block, 512);
    // What a thread adds up, as many sums at once as a vector has, in all blocks is all there is, but for a part of a
    // block along each side.
    const std::int64_t vector = down ? (outputs % 4 == 0 ? 4 : outputs % 2 == 0 ? 2 : 1) : 1;
    EXPECT_GE(launch.threads_per_block * launch.grid[0] * vector * 2, std::min<std::int64_t>(outputs, 2))
        << "some thread for every output";
    EXPECT_GE(launch.blocks() * launch.threads_per_block * as_number(vector) *
                  std::ceil(as_number(inputs) / std::max(1.0, as_number(launch.grid[1]))),
              as_number(outputs));
    const std::int64_t splits = launch.grid[1];
    if (splits > 1) {  // a counter a column of blocks is cleared first
      ASSERT_EQ(made.launches.size(), 2u);
      EXPECT_EQ(made.launches[0].written_bytes(), 4.0 * as_number(launch.grid[0]));
      ASSERT_EQ(made.temporaries.size(), 2u);
      EXPECT_EQ(made.temporaries[1], 4 * launch.grid[0]);
      EXPECT_EQ(made.temporaries[0] % (4 * outputs * splits), 0) << "a place for every partial sum";
      EXPECT_GE(work.tail_steps, 1.0);
      // Split for no more blocks than the SMs hold, and for 16 values a thread or more; no thread has more than 256.
      const double places = as_number(device().sm.count) * (2048.0 / launch.threads_per_block);
      const double most = std::max(std::ceil(places / as_number(launch.grid[0])), 1.0);
      EXPECT_LE(as_number(splits), std::max(most, as_number(in_pieces(inputs, 256))));
    } else {
      EXPECT_EQ(made.launches.size(), 1u);
      EXPECT_TRUE(made.temporaries.empty());
      EXPECT_EQ(work.tail_steps, 0.0);
    }
    EXPECT_GT(work.iterations, 0.0);
  }
}

/// A row of a single value is copied; one value a row or a column more is never less work of a block.
TEST(StatedSums, longer_sums_take_no_fewer_passes_in_a_grid_that_stays) {
  for (const ReductionKind kind : {ReductionKind::sum_rows, ReductionKind::sum_cols})
    for (const std::int64_t outputs : {64, 1000, 4096}) {
      double last = 0.0;
      std::array<std::int64_t, 3> grid{};
      for (std::int64_t inputs = 2; inputs < 3000; inputs += 64) {
        Reduction op{kind, DType::fp32, inputs, outputs};
        if (kind == ReductionKind::sum_cols) std::swap(op.rows, op.cols);
        const KernelLaunch launch = lower_reduction(op, device(), Software{}).launches.back();
        if (launch.grid == grid && inputs >= 256) {
          EXPECT_GE(its_work(launch).iterations, last - 1e-9) << inputs << " of " << outputs;
        }
        grid = launch.grid, last = its_work(launch).iterations;
      }
    }
}

TEST(StatedSums, running_sums_walk_down_columns_or_by_tiles_along_rows) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    Reduction op = drawn_reduction(draws);
    const bool down = draws.index(2) == 0;
    op.kind = down ? ReductionKind::scan_rows : ReductionKind::scan_cols;
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": " + std::to_string(op.rows) + " x " +
                 std::to_string(op.cols));
    const auto launches = lower_reduction(op, device(), Software{}).launches;
    const bool whole = !down && op.rows == 1;  // CUB's scan, which a small kernel prepares
    ASSERT_EQ(launches.size(), whole ? 2u : 1u);
    const KernelLaunch& launch = launches.back();
    const double n = as_number(op.rows * op.cols), bytes = n * as_number(bytes_of(op.type));
    EXPECT_DOUBLE_EQ(launch.read_bytes(), bytes);
    EXPECT_DOUBLE_EQ(launch.written_bytes(), bytes);
    EXPECT_DOUBLE_EQ(launch.flops, n);
    if (whole) {
      EXPECT_EQ(launch.name, "DeviceScanKernel");
      EXPECT_EQ(launch.grid[0], in_pieces(op.cols * bytes_of(op.type), 7680));
    } else if (down) {  // a thread a column, an element after the other
      EXPECT_EQ(its_class(launch), "scan_columns");
      EXPECT_EQ(launch.threads_per_block, std::min<std::int64_t>(op.cols, 512));
      EXPECT_EQ(launch.grid[0], 1);
      EXPECT_EQ(launch.grid[1], in_pieces(op.cols, launch.threads_per_block));
      EXPECT_DOUBLE_EQ(its_work(launch).iterations, as_number(op.rows));
      EXPECT_DOUBLE_EQ(its_work(launch).elements, n);
    } else {  // blocks of 512 threads, side by side in a row by how much longer rows are than many
      const auto doublings = [](std::int64_t x) { return std::ceil(std::log2(as_number(x)) - 1e-12); };
      const double share = 9.0 + doublings(op.cols) - doublings(op.rows);
      const double power = share < 0.0 ? 9.0 : std::clamp(std::trunc(share / 2.0), 4.0, 9.0);  // numbers have no sign
      const auto width = static_cast<std::int64_t>(std::exp2(power)), tiles = in_pieces(op.cols, 2 * width);
      EXPECT_EQ(its_class(launch), "scan");
      EXPECT_EQ(launch.threads_per_block, 512);
      EXPECT_EQ(launch.grid[0], in_pieces(op.rows, 512 / width));
      EXPECT_DOUBLE_EQ(its_work(launch).iterations, as_number(tiles));
      EXPECT_DOUBLE_EQ(its_work(launch).elements, as_number(op.rows * tiles * 2 * width));
    }
  }
}

TEST(StatedTableGradients, few_tokens_are_walked_by_one_kernel_and_many_sorted_first) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 500 && !HasFailure(); ++i) {
    Embedding op{.backward = true,
                 .type = draws.index(2) == 0 ? DType::bf16 : DType::fp32,
                 .tokens = std::llround(draws.between(1, 60000)),
                 .vocabulary = std::llround(draws.between(2, 100000)),
                 .hidden = std::llround(draws.between(1, 3000))};
    if (draws.index(4) == 0) op.tokens = 3072 + static_cast<std::int64_t>(draws.index(2));
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": " + std::to_string(op.tokens) + " " +
                 std::to_string(op.vocabulary) + " " + std::to_string(op.hidden));
    const LoweredOp made = lower_embedding(op, device(), Software{});
    const double e = as_number(bytes_of(op.type)), table = as_number(op.vocabulary * op.hidden) * e,
                 gradient = as_number(op.tokens * op.hidden) * e, indices = 8.0 * as_number(op.tokens),
                 rows = distinct_rows(op.tokens, op.vocabulary) * as_number(op.hidden) * e;
    double filled = 0.0, gradients_read = 0.0, sorted = 0.0, summed = 0.0, written = 0.0;
    for (const KernelLaunch& launch : made.launches) {
      if (launch.name == "fill") {
        filled += launch.written_bytes();
        EXPECT_DOUBLE_EQ(its_work(launch).elements * as_number(bytes_of(launch.type)), launch.written_bytes());
      }
      if (launch.name == "RadixSortOnesweep") ++sorted;
      for (const Access& read : launch.reads)
        if (read.operand == 0) {
          gradients_read += read.bytes;
          summed += its_work(launch).elements;
        }
      if (launch.name != "fill")
        for (const Access& write : launch.writes)
          if (write.operand == 2) written += write.bytes;
    }
    EXPECT_GE(filled, table * (1.0 - 1e-12)) << "the table is cleared";
    EXPECT_DOUBLE_EQ(gradients_read, gradient) << "every gradient is read once";
    EXPECT_DOUBLE_EQ(summed, as_number(op.tokens * op.hidden));
    EXPECT_GE(written, rows * (1.0 - 1e-9)) << "rows that tokens touch are written";
    if (op.tokens <= 3072) {
      ASSERT_EQ(made.launches.size(), 2u);
      const KernelLaunch& walk = made.launches[1];
      EXPECT_EQ(its_class(walk), "embedding_feature");
      EXPECT_EQ(walk.grid[0], in_pieces(op.hidden, 32));
      EXPECT_DOUBLE_EQ(its_work(walk).iterations, as_number(in_pieces(op.tokens, 32)));
      EXPECT_DOUBLE_EQ(walk.reads[1].bytes, indices);
      EXPECT_DOUBLE_EQ(walk.reads[1].requested, indices * as_number(walk.grid[0]));
      EXPECT_DOUBLE_EQ(walk.reads[2].bytes, rows);
      EXPECT_EQ(sorted, 0.0);
      continue;
    }
    // Eight passes over 64-bit indices, of which those move data whose digits differ.
    EXPECT_EQ(sorted, 8.0);
    double busy = 0.0;
    for (const KernelLaunch& launch : made.launches)
      if (launch.name == "RadixSortOnesweep") busy += its_work(launch).iterations;
    EXPECT_EQ(busy, std::ceil(std::ceil(std::log2(as_number(op.vocabulary))) / 8.0));
    const bool cast = made.launches.back().name == "cast";
    const bool fused = cast || its_class(made.launches.back()) == "embedding_atomic";
    EXPECT_TRUE(fused || its_class(made.launches.back()) == "embedding_scatter");
    if (cast) {  // sums in fp32 are brought to 16 bits
      EXPECT_EQ(op.type, DType::bf16);
      EXPECT_DOUBLE_EQ(made.launches.back().read_bytes(), 2.0 * table);
      EXPECT_DOUBLE_EQ(made.launches.back().written_bytes(), table);
    }
  }
}

}  // namespace
}  // namespace ridgeline

// Softmax, norms and running sums of random rows against docs/model/lowering.md: which kernel, its blocks, the bytes of
// every operand, the work of a block.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/families.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
double as_real(std::int64_t x) { return static_cast<double>(x); }
const MemoryBoundWork& work_in(const KernelLaunch& launch) { return std::get<MemoryBoundWork>(launch.work); }
std::string class_of(const KernelLaunch& launch) {
  return std::string(name_of(static_cast<MemoryBoundKernel>(work_in(launch).kernel_class)));
}
/// Bytes by operand; a temporary is -1.
using OperandBytes = std::vector<std::pair<int, double>>;
OperandBytes bytes_of_operands(const std::vector<Access>& accesses) {
  OperandBytes all;
  for (const Access& access : accesses) all.emplace_back(access.operand, access.bytes);
  return all;
}

struct Rows {
  DType type;
  std::int64_t rows, cols, e;
  double n, bytes;
};
Rows drawn_rows(Draws& draws) {
  Rows r{};
  r.type = std::array{DType::fp32, DType::bf16, DType::fp16}[draws.index(3)];
  constexpr std::array kBounds{32, 64, 128, 256, 1024, 2048, 9216, 12160, 24512, 24000};
  r.cols = draws.index(2) == 0 ? kBounds[draws.index(kBounds.size())] + static_cast<int>(draws.index(3)) - 1
                               : std::llround(draws.between(1, 60000));
  if (draws.index(2) == 0) r.cols = std::max<std::int64_t>(8, r.cols / 8 * 8);
  r.rows = std::llround(draws.between(1, 5000));
  r.e = bytes_of(r.type);
  r.n = as_real(r.rows * r.cols);
  r.bytes = r.n * as_real(r.e);
  return r;
}
std::string where(std::uint64_t seed, const Rows& r) {
  return "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": " + std::to_string(r.rows) + " x " +
         std::to_string(r.cols) + " of " + std::to_string(r.e) + " bytes";
}

/// A warp a row padded to 2^j, two rows a warp up to 128: blocks of four warps, narrower ones on short rows.
void expect_warps(const KernelLaunch& launch, const Rows& r, double padded_share) {
  std::int64_t padded = 1;
  while (padded < r.cols) padded *= 2;
  const std::int64_t lanes = std::min<std::int64_t>(32, padded), together = padded <= 128 ? 2 : 1;
  EXPECT_EQ(launch.threads_per_block, 128);
  EXPECT_EQ(launch.grid[0], divided_up(r.rows, 128 / lanes * together));
  EXPECT_DOUBLE_EQ(work_in(launch).elements, as_real(r.rows * divided_up(r.cols, lanes) * lanes));
  EXPECT_DOUBLE_EQ(work_in(launch).padded_elements, as_real(r.rows * padded));
  const double to_its_end = as_real(divided_up(r.cols, lanes)), to_padding = as_real(padded / lanes);
  EXPECT_NEAR(work_in(launch).iterations,
              as_real(together) * ((1.0 - padded_share) * to_its_end + padded_share * to_padding), 1e-9);
}

/// Passes over a row in memory: whole vectors while all threads have one, the rest and the head of a row that begins
/// between vectors element by element.
double passes_by_vectors(const Rows& r, std::int64_t threads) {
  const std::int64_t vector = 16 / r.e;
  const auto passes = [&](std::int64_t length) {
    const std::int64_t whole = length / (threads * vector), rest = length - whole * threads * vector;
    return as_real(whole + divided_up(rest, threads));
  };
  const double at_vectors = as_real(std::gcd(r.cols, vector)) / as_real(vector);
  const std::int64_t behind = std::max<std::int64_t>(0, r.cols - threads + vector / 2);
  return at_vectors * passes(r.cols) + (1.0 - at_vectors) * (1.0 + passes(behind));
}
/// Of a block on one row: at least half have whole vectors, at most 1024.
std::int64_t threads_on_row(const Rows& r) {
  std::int64_t threads = 32;
  while (threads < std::min<std::int64_t>(1024, r.cols / (16 / r.e)) / 2) threads *= 2;
  return threads;
}

TEST(StatedSoftmax, forward_kernels_are_those_of_the_table) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (int i = 0; i < 3000 && !HasFailure(); ++i) {
    const Rows r = drawn_rows(draws);
    SCOPED_TRACE(where(seed, r));
    Software software;
    software.softmax_keeps_long_rows = draws.index(3) != 0;
    software.softmax_fills_blocks = draws.index(2) != 0;
    const bool log = draws.index(2) == 0;
    const auto launches =
        lower_softmax({.log = log, .input = r.type, .output = r.type, .rows = r.rows, .cols = r.cols}, gpu, software)
            .launches;
    ASSERT_EQ(launches.size(), 1u);
    const KernelLaunch& launch = launches[0];
    const MemoryBoundWork& work = work_in(launch);
    const std::string prefix = log ? "log_softmax_" : "softmax_";
    const bool vectors = r.cols % (16 / r.e) == 0;
    const double row = as_real(r.cols * r.e);
    EXPECT_EQ(bytes_of_operands(launch.reads), (OperandBytes{{0, r.bytes}}));
    EXPECT_EQ(bytes_of_operands(launch.writes), (OperandBytes{{1, r.bytes}}));
    EXPECT_DOUBLE_EQ(launch.flops, 5.0 * r.n);
    EXPECT_EQ(launch.time_class, TimeClass::normalization);
    if (r.cols > 1024 && !software.softmax_keeps_long_rows) {  // read three times, whatever the length
      EXPECT_EQ(class_of(launch), "softmax_block");
      EXPECT_EQ(launch.threads_per_block, software.softmax_fills_blocks && !vectors ? 1024 : threads_on_row(r));
      EXPECT_TRUE(work.reread_through_l1 && work.crowded_as_here);
    } else if (r.cols <= 2048) {
      EXPECT_EQ(class_of(launch), prefix + (r.cols > 1024 ? "warp_wide" : "warp"));
      expect_warps(launch, r, log ? 0.35 : 0.15);
      continue;
    } else if (r.cols <= 9216) {
      EXPECT_EQ(class_of(launch), prefix + "registers");
      EXPECT_EQ(launch.threads_per_block, 1024);
      EXPECT_DOUBLE_EQ(work.iterations, as_real(divided_up(r.cols, 1024)));
      EXPECT_EQ(work.reread_bytes, 0.0);
    } else if (vectors && row < 48 * 1024 - 128) {  // in shared memory, by vectors
      EXPECT_EQ(class_of(launch), prefix + "registers");
      EXPECT_EQ(launch.shared_bytes_per_block, 128 + r.cols * r.e);
      EXPECT_DOUBLE_EQ(work.iterations, 0.5 * as_real(divided_up(r.cols, 1024)));
      EXPECT_EQ(work.reread_bytes, 0.0);
    } else {
      EXPECT_EQ(class_of(launch), "softmax_block");
      EXPECT_EQ(launch.threads_per_block, 1024);
      EXPECT_FALSE(work.reread_through_l1 || work.crowded_as_here);
    }
    EXPECT_EQ(launch.grid[0], r.rows) << "a block a row";
    EXPECT_DOUBLE_EQ(work.elements, r.n);
    if (class_of(launch) == "softmax_block") {
      EXPECT_DOUBLE_EQ(work.reread_bytes, 2.0 * r.bytes) << "read three times";
      EXPECT_DOUBLE_EQ(work.reread_row_bytes, row);
      EXPECT_NEAR(work.iterations, passes_by_vectors(r, launch.threads_per_block), 1e-9);
    }
  }
}

TEST(StatedSoftmax, backward_multiplies_first_and_then_runs_the_kernels_of_the_table) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (int i = 0; i < 3000 && !HasFailure(); ++i) {
    Rows r = drawn_rows(draws);
    if (draws.index(50) == 0)
      r.rows = (std::int64_t{1} << 31) / r.cols, r.n = as_real(r.rows * r.cols), r.bytes = r.n * as_real(r.e);
    SCOPED_TRACE(where(seed, r));
    const bool log = draws.index(2) == 0;
    auto launches =
        lower_softmax({.log = log, .backward = true, .input = r.type, .output = r.type, .rows = r.rows, .cols = r.cols},
                      gpu, Software{})
            .launches;
    // Indices of a point-wise kernel are 32 bits of bytes.
    double parts = 1.0, sum = 0.0;
    while (r.bytes / parts > 2147483647.0) parts *= 2.0;
    ASSERT_EQ(launches.size(), log ? 1u : 1u + static_cast<std::size_t>(parts));
    for (std::size_t k = 0; k + 1 < launches.size(); ++k) {
      const MemoryBoundWork& product = work_in(launches[k]);
      const double last = std::ceil(std::fmod(product.elements, 1024.0) / 128.0);
      EXPECT_EQ(class_of(launches[k]), "mul");
      EXPECT_LE(std::abs(product.elements - r.n / parts), 1.0);
      EXPECT_EQ(launches[k].grid[0], std::llround(std::ceil(product.elements / 1024.0)));
      EXPECT_DOUBLE_EQ(product.active_blocks, product.elements / 1024.0);
      EXPECT_DOUBLE_EQ(product.tail_steps, std::max(0.0, last - 1.0));
      EXPECT_DOUBLE_EQ(launches[k].flops, product.elements);
      const double bytes = product.elements * as_real(r.e);
      EXPECT_EQ(launches[k].reads.size(), 2u);
      for (const Access& read : launches[k].reads) EXPECT_NEAR(read.bytes, bytes, 1e-6 * bytes);
      EXPECT_NEAR(launches[k].written_bytes(), bytes, 1e-6 * bytes);
      sum += product.elements;
    }
    EXPECT_DOUBLE_EQ(sum, log ? 0.0 : r.n);
    const KernelLaunch& launch = launches.back();
    const MemoryBoundWork& work = work_in(launch);
    EXPECT_EQ(bytes_of_operands(launch.reads), (OperandBytes{{log ? 0 : Access::kTemporary, r.bytes}, {1, r.bytes}}));
    EXPECT_EQ(bytes_of_operands(launch.writes), (OperandBytes{{2, r.bytes}}));
    EXPECT_DOUBLE_EQ(launch.flops, 4.0 * r.n);
    if (r.cols <= 1024) {
      EXPECT_EQ(class_of(launch), log ? "log_softmax_backward_warp" : "softmax_backward_warp");
      expect_warps(launch, r, 0.15);
      continue;
    }
    const std::int64_t threads = threads_on_row(r), row = r.cols * r.e, sums = threads / 32 * 4;
    EXPECT_EQ(launch.threads_per_block, threads);
    EXPECT_EQ(launch.grid[0], r.rows);
    EXPECT_DOUBLE_EQ(work.elements, r.n);
    if (r.cols % (16 / r.e) == 0 && row + sums < 48 * 1024) {
      EXPECT_EQ(class_of(launch), "softmax_backward_shared");
      EXPECT_EQ(launch.shared_bytes_per_block, row + sums);
      EXPECT_DOUBLE_EQ(work.iterations, as_real(divided_up(r.cols, threads * (16 / r.e))));
    } else {
      EXPECT_EQ(class_of(launch), "softmax_backward_block");
      EXPECT_NEAR(work.iterations, passes_by_vectors(r, threads), 1e-9);
      EXPECT_DOUBLE_EQ(work.reread_bytes, r.bytes) << "the gradient again";
      EXPECT_DOUBLE_EQ(work.reread_row_bytes, as_real(row));
    }
  }
}

/// Elements of rows whose warps issue for idle lanes too, `each` elements a lane.
double by_whole_warps(const Rows& r, std::int64_t each) {
  return as_real(r.rows * divided_up(r.cols, 32 * each) * 32 * each);
}

TEST(StatedNorms, forward_is_a_block_a_row_by_vectors_or_two_kernels) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    const Rows r = drawn_rows(draws);
    SCOPED_TRACE(where(seed, r));
    const bool rms = draws.index(2) == 0, bias = draws.index(2) == 0;
    Software software;
    software.norms_by_vectors = draws.index(4) != 0;
    const auto launches =
        lower_norm({.rms = rms, .bias = bias, .type = r.type, .rows = r.rows, .cols = r.cols}, gpu, software).launches;
    const double weight = as_real(r.cols * r.e), statistic = 4.0 * as_real(r.rows);
    OperandBytes reads{{0, r.bytes}, {1, weight}}, statistics;
    if (bias && !rms) reads.emplace_back(2, weight);
    const int out = static_cast<int>(reads.size());
    statistics.emplace_back(out + 1, statistic);
    if (!rms) statistics.emplace_back(out + 2, statistic);
    OperandBytes writes{{out, r.bytes}};
    double flops = 0.0;
    for (const KernelLaunch& launch : launches) {
      flops += launch.flops;
      EXPECT_EQ(launch.grid[0], r.rows);
      EXPECT_EQ(launch.time_class, TimeClass::normalization);
    }
    EXPECT_DOUBLE_EQ(flops, 7.0 * r.n);
    const MemoryBoundWork& last = work_in(launches.back());
    if (r.cols % 4 == 0 && (software.norms_by_vectors || rms)) {
      ASSERT_EQ(launches.size(), 1u);
      EXPECT_EQ(class_of(launches[0]), "layer_norm_vectorized");
      EXPECT_EQ(launches[0].threads_per_block, 128);
      EXPECT_DOUBLE_EQ(last.elements, by_whole_warps(r, 4));
      EXPECT_DOUBLE_EQ(last.iterations, as_real(divided_up(r.cols, 512)));
      EXPECT_DOUBLE_EQ(last.reread_bytes, r.bytes) << "statistics first, then the row again";
      EXPECT_DOUBLE_EQ(last.reread_row_bytes, weight);
      EXPECT_TRUE(last.reread_through_l1);
      writes.insert(writes.end(), statistics.begin(), statistics.end());
      EXPECT_EQ(bytes_of_operands(launches[0].writes), writes);
    } else {
      ASSERT_EQ(launches.size(), 2u);
      EXPECT_EQ(class_of(launches[0]), "layer_norm_moments");
      EXPECT_DOUBLE_EQ(work_in(launches[0]).iterations, as_real(divided_up(r.cols, 512)));
      EXPECT_DOUBLE_EQ(work_in(launches[0]).elements, r.n);
      EXPECT_EQ(bytes_of_operands(launches[0].reads), (OperandBytes{{0, r.bytes}}));
      EXPECT_EQ(bytes_of_operands(launches[0].writes), statistics);
      EXPECT_EQ(class_of(launches[1]), "layer_norm_transform");
      EXPECT_DOUBLE_EQ(last.elements, by_whole_warps(r, 1));
      EXPECT_DOUBLE_EQ(last.iterations, as_real(divided_up(r.cols, 256)));
      EXPECT_EQ(bytes_of_operands(launches[1].writes), writes);
    }
    EXPECT_EQ(bytes_of_operands(launches.back().reads), reads);
  }
}

TEST(StatedNorms, backward_is_the_gradient_of_the_rows_then_that_of_the_weights) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    Rows r = drawn_rows(draws);
    if (draws.index(3) == 0) {  // many rows of few columns
      r.rows = 65536 + static_cast<std::int64_t>(draws.index(3)) - 1 + 32 * static_cast<std::int64_t>(draws.index(100));
      r.cols = std::array{64, 768, 2079, 2112, 2143, 4096}[draws.index(6)];
      r.n = as_real(r.rows * r.cols), r.bytes = r.n * as_real(r.e);
    }
    SCOPED_TRACE(where(seed, r));
    const bool rms = draws.index(2) == 0, bias = draws.index(2) == 0, vectors = r.cols % 4 == 0;
    const LoweredOp lowered = lower_norm(
        {.rms = rms, .backward = true, .bias = bias, .type = r.type, .rows = r.rows, .cols = r.cols}, gpu, Software{});
    const double weight = as_real(r.cols * r.e), statistic = 4.0 * as_real(r.rows);
    OperandBytes reads{{0, r.bytes}, {1, r.bytes}, {2, weight}}, weights_read{{0, r.bytes}, {1, r.bytes}};
    for (int k = 0; k < (rms ? 1 : 2); ++k)
      reads.emplace_back(3 + k, statistic), weights_read.emplace_back(3 + k, statistic);
    const int dx = static_cast<int>(reads.size());
    const KernelLaunch &rows = lowered.launches[0], &weights = lowered.launches[1];
    const MemoryBoundWork &of_rows = work_in(rows), &of_weights = work_in(weights);
    EXPECT_EQ(class_of(rows), vectors ? "layer_norm_backward_vectorized" : "layer_norm_backward");
    EXPECT_EQ(rows.grid[0], r.rows);
    EXPECT_DOUBLE_EQ(of_rows.elements, by_whole_warps(r, vectors ? 4 : 1));
    EXPECT_DOUBLE_EQ(of_rows.iterations, as_real(divided_up(r.cols, vectors ? 512 : 128)));
    EXPECT_DOUBLE_EQ(of_rows.reread_bytes, 2.0 * r.bytes);
    EXPECT_DOUBLE_EQ(of_rows.reread_row_bytes, 2.0 * weight);
    EXPECT_TRUE(of_rows.reread_through_l1);
    EXPECT_DOUBLE_EQ(rows.flops, 12.0 * r.n);
    EXPECT_EQ(bytes_of_operands(rows.reads), reads);
    EXPECT_EQ(bytes_of_operands(rows.writes), (OperandBytes{{dx, r.bytes}}));
    EXPECT_EQ(bytes_of_operands(weights.reads), weights_read);
    EXPECT_DOUBLE_EQ(weights.flops, 4.0 * r.n);
    EXPECT_DOUBLE_EQ(of_weights.elements, by_whole_warps(r, 1));
    EXPECT_EQ(weights.grid[0], divided_up(r.cols, 32));
    const std::int64_t gradients = bias && !rms ? 2 : 1;
    // More than 65536 rows of fewer columns than 16 a SM: blocks of 32 rows, whose sums a reduction each adds.
    if (r.rows > 65536 && r.cols / 32 < gpu.sm.count / 2) {
      const std::int64_t blocks = divided_up(r.rows, 32);
      EXPECT_EQ(class_of(weights), r.rows % 32 == 0 && r.cols % 32 == 0 ? "gamma_beta_aligned" : "gamma_beta");
      EXPECT_EQ(weights.grid[1], blocks);
      EXPECT_EQ(weights.threads_per_block, 32);
      EXPECT_DOUBLE_EQ(of_weights.iterations, 4.0);
      EXPECT_EQ(bytes_of_operands(weights.writes),
                (OperandBytes{{Access::kTemporary, as_real(gradients * blocks) * weight}}));
      EXPECT_EQ(std::count(lowered.temporaries.begin(), lowered.temporaries.end(), blocks * r.cols * r.e), gradients);
      double summed = 0.0, written = 0.0;
      for (std::size_t k = 2; k < lowered.launches.size(); ++k) {
        summed += lowered.launches[k].read_bytes();
        for (const Access& write : lowered.launches[k].writes)
          if (write.operand > dx) written += write.bytes;
      }
      EXPECT_DOUBLE_EQ(summed, weights.written_bytes());
      EXPECT_DOUBLE_EQ(written, as_real(gradients) * weight);
    } else {
      ASSERT_EQ(lowered.launches.size(), 2u);
      const std::int64_t height = r.rows < 64 ? 1 : r.rows < 128 ? 8 : r.rows < 256 ? 16 : 32;
      const bool aligned = r.rows % (8 * height) == 0 && r.cols % 32 == 0;
      EXPECT_EQ(class_of(weights), aligned ? "gamma_beta_aligned" : "gamma_beta");
      EXPECT_EQ(weights.threads_per_block, 32 * height);
      EXPECT_DOUBLE_EQ(of_weights.iterations, as_real(divided_up(r.rows, 8 * height)));
      OperandBytes written{{dx + 1, weight}};
      if (gradients == 2) written.emplace_back(dx + 2, weight);
      EXPECT_EQ(bytes_of_operands(weights.writes), written);
    }
  }
}

}  // namespace
}  // namespace ridgeline

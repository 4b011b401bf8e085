#include "sim/kernels/products/few_vectors.h"

#include <algorithm>

#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/products/gemm_selection.h"

namespace ridgeline {
namespace {

/// B is contiguous along k: 16 lanes add up a dot product of every vector with a row of it. Otherwise a thread walks
/// down a column.
bool dots(const Matmul& op) { return op.layout == Layout::nt; }

/// Batches whose B is contiguous along k, of many blocks: on an H200 all 8 profiled batches with 384 and more ran these
/// kernels, none of 3 with up to 132. The same number is assumed of every chip.
bool is_batch_of_rows(const Matmul& op) {
  constexpr std::int64_t kMostVectors = 16, kShortSum = 90, kFewestBlocks = 264;
  return op.m <= kMostVectors && op.k >= kShortSum &&
         ceil_div(op.n, 8) * ceil_div(op.m, 8) * op.batch >= kFewestBlocks;
}

}  // namespace

// When the libraries take them is read from 108 such kernels among the products of an H200 with up to 16 rows.
bool is_few_vectors(const Matmul& op, const Gpu& gpu) {
  if (op.m < 2 || op.n < 2 || op.k < 2 || op.sparse != SparseOperand::none || !gpu.gemm.tiles.empty()) return false;
  const bool fp32 = op.type == DType::fp32;
  const bool single_bf16 = op.type == DType::bf16 && gemm_problem(op, gpu).alignment < 4;
  // Sums of a few values and few of them run these kernels up to 16 rows (3 of 3 beyond the bounds below).
  constexpr std::int64_t kFewValues = 40, kFewOutputs = 1000, kMostOfFew = 16;
  const bool few_values = op.m <= kMostOfFew && op.k <= kFewValues && op.n <= kFewOutputs && op.batch == 1;
  if (dots(op)) {
    if (op.batch > 1) return (fp32 || single_bf16) && is_batch_of_rows(op);
    // Few outputs of long sums are split in tiles instead, unless there is a bias to add.
    constexpr std::int64_t kMostVectors = 16, kShortSum = 100, kMany = 1000;
    // Long sums with a bias are split in tiles too: k of 9,536 and more (3 of 3), of 2,048 with 16 vectors.
    constexpr std::int64_t kLongSum = 9000, kLongSumOfMany = 2000, kManyVectors = 10;
    if (fp32 && op.bias && op.k >= (op.m > kManyVectors ? kLongSumOfMany : kLongSum)) return false;
    if (single_bf16) return op.bias && op.m <= 10;
    if (fp32 && few_values) return true;
    return fp32 && op.m <= (op.bias ? kMostVectors : kMostVectors / 2) &&
           (op.k <= kShortSum || op.n >= kMany || op.bias) && (op.n < 10 * kMany || op.m <= 4);
  }
  constexpr std::int64_t kMostVectors = 12, kShortSum = 320, kMany = 10000;
  // Of 19 profiled batches of fp32 five ran them, by no bound that their sides tell.
  if (op.layout != Layout::nn || op.batch > 1) return false;
  if (fp32 && few_values) return true;
  // bf16 rows at odd values: few outputs of up to 16 rows too (2 of 2).
  constexpr std::int64_t kNarrow = 200, kShort = 128;
  if (single_bf16 && op.m <= kMostOfFew && op.n <= kNarrow && op.k <= kShort) return true;
  if (op.m > kMostVectors) return false;
  return (fp32 && (op.k <= kShortSum || op.n >= kMany)) || (single_bf16 && op.k <= kShortSum);
}

KernelLaunch few_vectors_launch(const Matmul& op, const std::vector<Access>& reads, const std::vector<Access>& writes) {
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k),
               batch = static_cast<double>(op.batch);
  // A block has 8 rows of B, or 64 columns, and up to 8 or 6 of the vectors.
  const bool rows = dots(op);
  const std::int64_t groups = ceil_div(op.m, rows ? 8 : 6);
  const double together = m / static_cast<double>(groups);
  // A lane takes two values of its row at a time, a thread eight of its column; every vector adds to the step.
  constexpr double kValuesOfRow = 32.0, kValuesOfColumn = 8.0, kVectorOfRows = 0.247, kVectorOfColumns = 0.008;
  KernelLaunch launch = memory_bound_launch(
      rows ? MemoryBoundKernel::few_rows : MemoryBoundKernel::few_columns, rows ? "gemmSN_TN" : "gemmSN_NN",
      TimeClass::tensor_contraction, op.type, {ceil_div(op.n, rows ? 8 : 64), groups * op.batch, 128, 64, 6144},
      {.elements = batch * k * n * static_cast<double>(groups),
       .padded_elements = batch * k * n * m,
       .iterations = rows ? k / kValuesOfRow * (1.0 + kVectorOfRows * together)
                          : k / kValuesOfColumn * (1.0 + kVectorOfColumns * together)});
  launch.flops = 2.0 * batch * m * n * k;
  launch.reads = reads;
  launch.reads[1].requested = static_cast<double>(groups) * reads[1].bytes;
  launch.writes = writes;
  return launch;
}

}  // namespace ridgeline

#include "sim/kernels/products/vector_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/products/gemm_launch.h"
#include "sim/kernels/products/product_ways.h"

namespace ridgeline {
namespace {

/// Threads of a block: `across` the outputs, `along` their sums.
struct Shape {
  int across, along, registers;
};

// Shapes and the sizes they are taken from are read from the names and grids of 392 kernels of an H200 (fp32, tf32,
// bf16, fp16). Where several are listed the law takes the fastest: the libraries' own choice varies as much.
// The matrix is contiguous along k:
constexpr std::array kShortRows{Shape{32, 2, 72}};
constexpr std::array kShortRowsHalf{Shape{64, 2, 56}};
constexpr std::array kRows{Shape{16, 4, 72}, Shape{8, 8, 72}, Shape{8, 16, 65}, Shape{4, 32, 159}};
constexpr std::int64_t kShort = 64;
// The matrix is contiguous along the outputs:
constexpr std::array kShortColumns{Shape{32, 2, 166}};
constexpr std::array kOneThread{Shape{128, 1, 48}};
constexpr std::array kMiddleColumns{Shape{8, 32, 45}, Shape{64, 2, 56}};
constexpr std::array kTallColumns{Shape{64, 2, 164}};
constexpr std::array kBatchedColumns{Shape{32, 2, 166}, Shape{8, 32, 45}, Shape{64, 2, 56}};
constexpr std::array kColumns{Shape{4, 32, 164}, Shape{8, 32, 164}, Shape{32, 16, 128}, Shape{128, 4, 128}};

/// fp32 sums of a thread each want a block of 128: profiled ones have 1,688 to 10,045 outputs; 4 and 64 outputs of the
/// same k run with many threads a sum.
constexpr std::int64_t kOutputsOfOneThread = 128;

struct Problem {
  std::int64_t outputs, k, batch, element;
  bool along_k;  ///< the matrix is contiguous along k
};

Problem problem_of(const Matmul& op) {
  const bool column = op.n == 1;
  const bool a_transposed = op.layout == Layout::tn || op.layout == Layout::tt,
             b_transposed = op.layout == Layout::nt || op.layout == Layout::tt;
  return {.outputs = std::max(op.m, op.n),
          .k = op.k,
          .batch = op.batch,
          .element = bytes_of(op.type),
          .along_k = (op.m == 1 && op.n == 1) || (column ? !a_transposed : b_transposed)};
}

std::span<const Shape> shapes_of(const Problem& p) {
  const bool half = p.element == 2;
  if (p.along_k) {
    if (p.k >= kShort) return kRows;
    return half ? std::span<const Shape>(kShortRowsHalf) : kShortRows;
  }
  if (p.batch > 1) return p.k < 300 ? std::span<const Shape>(kBatchedColumns) : kColumns;
  if (half) {
    if (p.k < 50) return kOneThread;
    return p.k < 300 ? std::span<const Shape>(kMiddleColumns) : kColumns;
  }
  if (p.k <= kShort) return kShortColumns;
  if (p.k < 100 && p.outputs >= kOutputsOfOneThread) return kOneThread;
  if (p.k < 175) return kMiddleColumns;
  return p.k < 240 ? std::span<const Shape>(kTallColumns) : kColumns;
}

/// Few long sums are cut into pieces of a block each, whatever the chip; a second kernel adds up a sum's pieces.
bool is_few_dots(const Problem& p) {
  if (p.batch > 1) return false;
  if (p.outputs == 1) return true;
  const bool half = p.element == 2;
  return p.along_k ? p.k >= 700 && p.outputs <= (half ? 40 : 104) : p.k >= 3800 && p.outputs <= (half ? 104 : 64);
}
/// Blocks of a sum: all that one result has, fp32 sums along k, others.
constexpr std::int64_t kBlocksOfOne = 496, kBlocksOfRow = 16, kBlocksOfSum = 31, kDotThreads = 128;
/// One result of fp32 comes from a split of the kernels for columns: into at most this many pieces.
constexpr std::int64_t kPiecesOfOne = 264;

constexpr int kFewRegisters = 50;

/// Dependent loads of a thread that walks `values` elements of its column: 16 in flight together (4 in kernels of few
/// registers), what is left over by fours.
double column_passes(double values, const Shape& shape) {
  constexpr double kInFlight = 16.0, kLeftOver = 4.0, kLeftOverCost = 1.83;
  const double whole = shape.registers < kFewRegisters ? 0.0 : std::floor(values / kInFlight);
  return whole + kLeftOverCost * std::ceil((values - kInFlight * whole) / kLeftOver);
}

/// A dot product's lanes load 16 bytes at a time; where rows do not hold whole vectors, head and tail come apart. A
/// block has a piece of the row.
double row_passes(const Problem& p, const Shape& shape, std::int64_t splits) {
  constexpr double kVector = 16.0, kHeadAndTail = 1.8;
  const std::int64_t bytes = ceil_div(p.k, splits) * p.element;
  return std::ceil(static_cast<double>(bytes) / (kVector * shape.along)) + (bytes % 16 != 0 ? kHeadAndTail : 0.0);
}

KernelLaunch product_launch(const Problem& p, const Matmul& op, const Shape& shape, std::int64_t splits,
                            const std::vector<Access>& reads, const std::vector<Access>& writes) {
  const auto k = static_cast<double>(p.k), outputs = static_cast<double>(p.outputs),
             batch = static_cast<double>(p.batch);
  MemoryBoundWork work{.elements = batch * k * (outputs + 1.0)};
  if (p.along_k) {
    work.iterations = row_passes(p, shape, splits);
    work.padded_elements = batch * outputs;
  } else {
    // A warp's load looks up a line for every row that it touches.
    work.padded_elements = batch * k * outputs / std::min(32, shape.across);
    work.iterations = column_passes(k / static_cast<double>(splits * shape.along), shape);
    work.tail_steps = shape.registers < kFewRegisters ? 0.0 : std::log2(shape.along);
  }
  // 16-bit rows of whole vectors, which Hopper's tiled kernels take, load and convert eight values at a time elsewhere.
  constexpr std::int64_t kVectorBytes = 16;
  const bool whole_vectors = p.element == 2 && p.k * p.element % kVectorBytes == 0;
  KernelLaunch launch = memory_bound_launch(
      !p.along_k      ? MemoryBoundKernel::vector_columns
      : whole_vectors ? MemoryBoundKernel::vector_rows_half
                      : MemoryBoundKernel::vector_rows,
      p.along_k ? "gemv_rows" : "gemv_columns", TimeClass::tensor_contraction, op.type,
      {ceil_div(p.outputs, shape.across), p.batch * splits, shape.across * shape.along, shape.registers, 1024}, work);
  launch.flops = 2.0 * batch * k * outputs;
  launch.reads = reads;
  if (splits == 1) launch.writes = writes;
  else launch.writes = {{.operand = Access::kTemporary, .bytes = 4.0 * static_cast<double>(splits) * outputs}};
  return launch;
}

/// Splits in powers of two where k leaves each a long piece and the outputs are not few enough to be dot products.
constexpr std::array<std::int64_t, 5> kPiecesOfK{2, 4, 8, 16, 32};
bool may_split(const Problem& p, std::int64_t splits) {
  constexpr std::int64_t kLong = 1500, kPiece = 512, kFewOutputs = 128;
  return !p.along_k && p.batch == 1 && p.k >= kLong && p.k >= splits * kPiece && p.outputs > kFewOutputs;
}

ProductWay dots_way(const Problem& p, const Matmul& op, std::vector<Access> reads, const std::vector<Access>& writes) {
  const auto k = static_cast<double>(p.k), outputs = static_cast<double>(p.outputs);
  const std::int64_t blocks = p.outputs == 1 ? kBlocksOfOne : p.along_k && p.element == 4 ? kBlocksOfRow : kBlocksOfSum;
  const double partial = 4.0 * static_cast<double>(blocks) * outputs;
  constexpr double kInFlight = 4.0;
  KernelLaunch dots =
      memory_bound_launch(MemoryBoundKernel::vector_dots, "dot_kernel", TimeClass::tensor_contraction, op.type,
                          {blocks, p.outputs, static_cast<int>(kDotThreads), 40, 1024},
                          {.elements = k * (outputs + 1.0),
                           .iterations = std::ceil(k / (kInFlight * static_cast<double>(kDotThreads * blocks)))});
  dots.flops = 2.0 * k * outputs;
  dots.reads = std::move(reads);
  dots.writes = {{.operand = Access::kTemporary, .bytes = partial}};
  KernelLaunch sums =
      memory_bound_launch(MemoryBoundKernel::vector_sums, "reduce_1Block_kernel", TimeClass::tensor_contraction,
                          DType::fp32, {p.outputs, 1, static_cast<int>(kDotThreads), 32, 1024},
                          {.elements = static_cast<double>(blocks) * outputs,
                           .iterations = static_cast<double>(ceil_div(blocks, kDotThreads))});
  sums.reads = {{.operand = Access::kTemporary, .bytes = partial}};
  sums.writes = writes;
  return {std::move(dots), std::move(sums)};
}

}  // namespace

bool is_vector_product(const Matmul& op, const Gpu& gpu) {
  if (std::min(op.m, op.n) != 1 || op.k == 1 || op.sparse != SparseOperand::none) return false;
  return gemm_problem(op, gpu).family != GemmWork::Family::wgmma || !is_half(op.type);
}

std::vector<ProductWay> vector_product_ways(const Matmul& op, std::vector<Access> reads,
                                            const std::vector<Access>& writes) {
  const Problem p = problem_of(op);
  const bool one = p.outputs == 1 && p.batch == 1;
  if (is_few_dots(p) && !(one && p.element == 4)) return {dots_way(p, op, std::move(reads), writes)};
  // The partial sums are added up by the same kernel whatever the product's type.
  GemmWork sum{.type = op.type, .batch = p.batch, .m = op.m, .n = op.n, .k = op.k, .stages = kSummedStages};
  const auto way_of = [&](const Shape& shape, std::int64_t splits) {
    ProductWay way{product_launch(p, op, shape, splits, reads, writes)};
    if (splits > 1) {
      sum.split_k = static_cast<int>(splits);
      way.push_back(split_reduction(sum, writes));
    }
    return way;
  };
  if (one) return {way_of(kColumns.front(), ceil_div(p.k, ceil_div(p.k, kPiecesOfOne)))};
  std::vector<ProductWay> ways;
  for (const Shape& shape : shapes_of(p)) {
    ways.push_back(way_of(shape, 1));
    for (const std::int64_t splits : kPiecesOfK)
      if (may_split(p, splits)) ways.push_back(way_of(shape, splits));
  }
  return ways;
}

void append_vector_product(std::vector<KernelLaunch>& launches, const Matmul& op, const Gpu& gpu,
                           std::vector<Access> reads, const std::vector<Access>& writes) {
  ProductWays ways;
  ways.others = vector_product_ways(op, std::move(reads), writes);
  append_fastest(launches, std::move(ways), gpu, {}, {});
}

}  // namespace ridgeline

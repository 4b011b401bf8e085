// Embedding: a gather of rows forward; backward a dense gradient. Few tokens are added by one kernel that walks them in
// order (deterministic); more are sorted first, summed segment by segment, scattered. PyTorch 2.11; tested by
// tests/kernels/measured_geometry_test.cpp.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/gathered_rows.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/memory_bound/radix_sort.h"

namespace ridgeline {
namespace {

KernelLaunch fill(double elements, DType type, int operand) {
  const auto bytes = elements * static_cast<double>(bytes_of(type));
  KernelLaunch launch =
      memory_bound_launch(MemoryBoundKernel::fill, "fill", TimeClass::elementwise, type,
                          {ceil_div(static_cast<std::int64_t>(elements), 1024), 1, 128, 16}, {.elements = elements});
  launch.writes = {{operand, bytes}};
  return launch;
}

/// An element a thread and turn, at most eight blocks of 128 threads an SM: each turn loads the index, then the
/// element.
KernelLaunch select_elements(const Embedding& op, int sms) {
  const std::int64_t n = op.tokens * op.hidden, grid = std::min(ceil_div(n, 128), std::int64_t{8} * sms);
  return memory_bound_launch(
      MemoryBoundKernel::index_select, "indexSelectLargeIndex", TimeClass::elementwise, op.type, {grid, 1, 128, 32},
      {.elements = static_cast<double>(n), .iterations = static_cast<double>(n) / static_cast<double>(grid * 128)});
}

/// An index an element (torch.gather's kernel): eight elements a thread, 128 threads apart.
LoweredOp gather_elements(const Embedding& op, const ChipShape& chip) {
  constexpr std::int64_t kOfBlock = 1024, kThreads = 128;
  const std::int64_t n = op.tokens * op.hidden;
  const auto elements = static_cast<double>(n), element = static_cast<double>(bytes_of(op.type));
  KernelLaunch launch =
      memory_bound_launch(MemoryBoundKernel::gather_elements, "gather", TimeClass::elementwise, op.type,
                          {ceil_div(n, kOfBlock), 1, 128, 32},
                          {.elements = elements,
                           .active_blocks = elements / static_cast<double>(kOfBlock),
                           .iterations = static_cast<double>(ceil_div(std::min(n, kOfBlock), kThreads))});
  const double row = static_cast<double>(op.hidden) * element;
  launch.reads = {{.operand = 0,
                   .bytes = fetched_rows(op.tokens, op.vocabulary, 2.0 * row, chip.l2) * row,
                   .requested = elements * element,
                   .loaded = elements * element},
                  {1, 8.0 * static_cast<double>(op.tokens), 8.0 * elements}};
  launch.writes = {{2, elements * element}};
  return {{std::move(launch)}, {}, false};
}

LoweredOp gather(const Embedding& op, const ChipShape& chip, bool by_vectors) {
  const std::int64_t row = op.hidden * bytes_of(op.type);
  const std::int64_t threads = std::min<std::int64_t>(256, 32 * ceil_div(row, 512));
  const auto elements = static_cast<double>(op.tokens * op.hidden);
  const double element = static_cast<double>(bytes_of(op.type));
  KernelLaunch launch =
      by_vectors ? memory_bound_launch(MemoryBoundKernel::gather, "vectorized_gather", TimeClass::elementwise, op.type,
                                       {op.tokens, ceil_div(row, threads * 16), static_cast<int>(threads), 32},
                                       {.elements = elements})
                 : select_elements(op, chip.sm.count);
  // Rows asked for again are in an SM's L1 to the extent that it holds the table.
  const double table = static_cast<double>(op.vocabulary) * static_cast<double>(row),
               row_bytes = static_cast<double>(row),
               fetched = fetched_rows(op.tokens, op.vocabulary, 2.0 * row_bytes, chip.l2) * row_bytes;
  const double beyond_l1 = elements * element * (1.0 - std::min(1.0, chip.sm.l1_and_shared.value() / table));
  launch.reads = {
      {.operand = 0, .bytes = fetched, .requested = std::max(fetched, beyond_l1), .loaded = elements * element},
      {1, 8.0 * static_cast<double>(op.tokens)}};
  launch.writes = {{2, elements * element}};
  return {{std::move(launch)}, {}, false};
}

/// Sorts `tokens` 64-bit indices; few of their digits differ.
void append_sort(const Embedding& op, const ChipShape& chip, LoweredOp& result) {
  append_radix_sort({op.tokens, 8, (log2_ceil(op.vocabulary) + 7) / 8}, chip, result);
}

/// Numbers of a gradient's rows and bytes.
struct GradientSizes {
  double elements, element, gradient_bytes, index_bytes, rows, row_bytes;
  explicit GradientSizes(const Embedding& op)
      : elements(static_cast<double>(op.vocabulary) * static_cast<double>(op.hidden)),
        element(static_cast<double>(bytes_of(op.type))),
        gradient_bytes(static_cast<double>(op.tokens * op.hidden) * element),
        index_bytes(8.0 * static_cast<double>(op.tokens)),
        rows(distinct_rows(op.tokens, op.vocabulary)),
        row_bytes(static_cast<double>(op.hidden) * element) {}
};

/// Of few tokens: a block walks over all of them for its columns.
LoweredOp unsorted_backward(const Embedding& op) {
  const auto [elements, element, gradient_bytes, index_bytes, rows, row_bytes] = GradientSizes(op);
  LoweredOp result;
  result.launches.push_back(fill(elements, op.type, 2));
  KernelLaunch launch =
      memory_bound_launch(MemoryBoundKernel::embedding_feature, "embedding_backward_feature", TimeClass::elementwise,
                          op.type, {ceil_div(op.hidden, 32), 1, 1024, 27, 8192},
                          {.elements = static_cast<double>(op.tokens * op.hidden),
                           .iterations = static_cast<double>(ceil_div(op.tokens, 32))});
  // 32 tokens a pass, their rows of the table read, added to and written back.
  launch.reads = {{0, gradient_bytes},
                  {1, index_bytes, index_bytes * static_cast<double>(ceil_div(op.hidden, 32))},
                  {2, rows * row_bytes}};
  launch.writes = {{2, rows * row_bytes}};
  result.launches.push_back(std::move(launch));
  return result;
}

/// Partial sums are added to the table at once; one of 16 bits takes them in fp32 and is cast.
void append_atomic_sum(const Embedding& op, const Geometry& shape, double rows_each, double partial_bytes,
                       LoweredOp& result) {
  const auto [elements, element, gradient_bytes, index_bytes, rows, row_bytes] = GradientSizes(op);
  auto& launches = result.launches;
  const bool half = is_half(op.type);
  if (half) {
    launches.push_back(fill(elements, DType::fp32, Access::kTemporary));
    result.temporaries.push_back(static_cast<std::int64_t>(elements) * 4);
  }
  KernelLaunch launch = memory_bound_launch(
      MemoryBoundKernel::embedding_atomic, "compute_grad_weight_atomic", TimeClass::elementwise, op.type, shape,
      {.elements = static_cast<double>(op.tokens * op.hidden), .iterations = rows_each});
  launch.reads = {{0, gradient_bytes}, {1, index_bytes}};
  launch.writes = {{half ? Access::kTemporary : 2, rows * static_cast<double>(op.hidden) * 4.0, partial_bytes}};
  launches.push_back(std::move(launch));
  if (!half) return;
  KernelLaunch cast =
      memory_bound_launch(MemoryBoundKernel::cast_down, "cast", TimeClass::copy, DType::bf16,
                          {ceil_div(static_cast<std::int64_t>(elements), 1024)}, {.elements = elements});
  cast.reads = {{Access::kTemporary, 4.0 * elements}};
  cast.writes = {{2, elements * element}};
  launches.push_back(std::move(cast));
}

/// Terms of the row that gets most of them, indices being uniform: the mean of a Poisson distribution, how far the
/// largest of `vocabulary` draws of a normal one lies above it, and for its longer tail ln(vocabulary)/6, the next term
/// of the expansion of Chernoff's bound, m·h(x/m) = ln(vocabulary) with h(u) = (1 + u)·ln(1 + u) - u, halved by what
/// the bound lies above the mean of the largest.
double longest_run(std::int64_t tokens, std::int64_t vocabulary) {
  const double rows = static_cast<double>(vocabulary), mean = static_cast<double>(tokens) / rows;
  const double longest = mean + std::sqrt(2.0 * mean * std::log(rows)) + std::log(rows) / 6.0;
  return std::clamp(longest, 1.0, static_cast<double>(tokens));
}

/// index_put with accumulate, its indices sorted: a warp for each run of equal ones adds term after term to the row,
/// which it reads and writes each time, so that the longest run decides. PyTorch 2.11's indexing_backward_kernel and
/// its variants for rows of up to a warp's lanes and of one element.
LoweredOp added_rows(const Embedding& op) {
  constexpr std::int64_t kLanes = 32, kElementsOfThread = 4, kRunsOfBlock = 4;
  const auto [elements, element, gradient_bytes, index_bytes, rows, row_bytes] = GradientSizes(op);
  const bool single = op.hidden == 1, narrow = op.hidden <= kLanes;
  const std::int64_t across = narrow ? 1 : ceil_div(op.hidden, kLanes * kElementsOfThread),
                     down = ceil_div(op.tokens, kRunsOfBlock);
  // Runs end at different times: together they are as much work as so many of the longest.
  const double longest = longest_run(op.tokens, op.vocabulary),
               runs = std::max(1.0, static_cast<double>(op.tokens) / longest / static_cast<double>(kRunsOfBlock));
  KernelLaunch launch = memory_bound_launch(single   ? MemoryBoundKernel::index_put_single
                                            : narrow ? MemoryBoundKernel::index_put_narrow
                                                     : MemoryBoundKernel::index_put_rows,
                                            "indexing_backward", TimeClass::elementwise, op.type,
                                            {down, across, static_cast<int>(kLanes * kRunsOfBlock), 32},
                                            {.elements = static_cast<double>(op.tokens * op.hidden),
                                             .active_blocks = runs * static_cast<double>(across),
                                             .iterations = longest});
  launch.reads = {{0, gradient_bytes},
                  {1, 2.0 * index_bytes, 2.0 * index_bytes * static_cast<double>(across)},
                  {2, rows * row_bytes, gradient_bytes}};
  launch.writes = {{2, rows * row_bytes, gradient_bytes}};
  LoweredOp result;
  result.launches.push_back(std::move(launch));
  return result;
}

LoweredOp backward(const Embedding& op, const ChipShape& chip) {
  constexpr std::int64_t kMostUnsorted = 3072;
  constexpr std::int64_t kRowsPerPartial = 10;
  if (op.tokens <= kMostUnsorted) return unsorted_backward(op);
  const auto [elements, element, gradient_bytes, index_bytes, rows, row_bytes] = GradientSizes(op);
  LoweredOp result;
  auto& launches = result.launches;
  append_sort(op, chip, result);
  launches.push_back(fill(elements, op.type, 2));
  const std::int64_t most_segments = std::min(op.tokens, op.vocabulary);
  const std::int64_t most_partials = op.tokens / kRowsPerPartial + most_segments;
  const std::int64_t stride = ceil_div(op.hidden, 32) * 32;
  const std::int64_t threads = std::min<std::int64_t>(stride, 1024);
  const std::int64_t grid = ceil_div(most_partials * stride, threads),
                     scatter_grid = ceil_div(most_segments * stride, threads);
  const std::int64_t scan_grid = ceil_div(most_segments, 128 * 7);
  const double partials_each =
      static_cast<double>(op.tokens) / rows / kRowsPerPartial;  // a thread writes those of its segment
  const std::int64_t segment_grid = ceil_div(most_segments, 32);
  // One fused kernel with atomics where the scatter alone would leave SMs idle.
  constexpr std::int64_t kAtomicBlocksPerSm = 16;
  const bool fused = scatter_grid < kAtomicBlocksPerSm * chip.sm.count && most_partials > scatter_grid * 4;
  launches.push_back(small_kernel(MemoryBoundKernel::tiny, "CompactInit", 0.0, 1, 128, 16, 0));
  launches.push_back(
      small_kernel(MemoryBoundKernel::unique, "UniqueByKeySweep", 0.0, ceil_div(op.tokens, 640 * 7), 640, 48, 35840));
  launches.push_back(small_kernel(MemoryBoundKernel::tiny, "partials_per_segment", segment_grid > 16 ? 2.0 : 0.6,
                                  segment_grid, 32, 16, 0));
  launches.push_back(small_kernel(MemoryBoundKernel::tiny, "ScanInit", 0.0, 1, 128, 16, 0));
  launches.push_back(small_kernel(MemoryBoundKernel::tiny, "Scan", 2.0 + std::min(4.0, 1.5 * log2_ceil(scan_grid)),
                                  scan_grid, 128, 47, 7184));
  launches.push_back(small_kernel(MemoryBoundKernel::tiny, "num_of_partial_segments", 0.7, 1, 1, 16, 0));
  launches.push_back(small_kernel(MemoryBoundKernel::tiny, "partial_segment_offset", 2.0 + 0.06 * partials_each,
                                  segment_grid, 32, 26, 0));
  const double partial_rows =
      std::min(static_cast<double>(op.tokens), rows + static_cast<double>(op.tokens) / kRowsPerPartial);
  const double partial_bytes = partial_rows * static_cast<double>(op.hidden) * 4.0;
  const double rows_each =
      std::max(1.0, std::min(static_cast<double>(kRowsPerPartial), static_cast<double>(op.tokens) / partial_rows));
  if (fused) {
    launches.push_back(small_kernel(MemoryBoundKernel::tiny, "partial_to_segment_idx", 2.0 + 0.06 * partials_each,
                                    segment_grid, 32, 16, 0));
    append_atomic_sum(op, {grid, 1, static_cast<int>(threads), 32}, rows_each, partial_bytes, result);
    return result;
  }
  KernelLaunch sum =
      memory_bound_launch(MemoryBoundKernel::embedding_segments, "compute_grad_weight", TimeClass::elementwise, op.type,
                          {grid, 1, static_cast<int>(threads), 32},
                          {.elements = static_cast<double>(op.tokens * op.hidden), .iterations = rows_each});
  sum.reads = {{0, gradient_bytes}, {1, index_bytes}};
  sum.writes = {{Access::kTemporary, partial_bytes}};
  KernelLaunch scatter = memory_bound_launch(
      MemoryBoundKernel::embedding_scatter, "sum_and_scatter", TimeClass::elementwise, op.type,
      {scatter_grid, 1, static_cast<int>(threads), 24}, {.elements = partial_rows * static_cast<double>(op.hidden)});
  scatter.reads = {{Access::kTemporary, partial_bytes}};
  scatter.writes = {{2, rows * row_bytes}};
  launches.push_back(std::move(sum));
  launches.push_back(std::move(scatter));
  // Counts, segment and partial offsets (64-bit), then the partial sums: sizes as in the recorded histories.
  const std::int64_t indices = 8 * op.tokens;
  result.temporaries = {indices, 8, indices, indices, 8, 8 * most_partials, most_partials * op.hidden * 4};
  return result;
}

}  // namespace

LoweredOp lower_embedding(const Embedding& op, const ChipShape& chip, const Software& software) {
  if (op.tokens < 1 || op.vocabulary < 1 || op.hidden < 1)
    throw std::invalid_argument("an embedding needs tokens, a vocabulary and a width");
  if (op.bags > 0) return lower_embedding_bags(op, chip);
  if (op.accumulates && !op.backward)
    throw std::invalid_argument("rows are added to a table in the backward pass alone");
  if (op.accumulates) return added_rows(op);
  if (op.backward) return backward(op, chip);
  // Rows that are no whole vectors are gathered an element at a time.
  constexpr std::int64_t kVectorBytes = 16;
  if (software.gathers_by_vectors && op.hidden * bytes_of(op.type) % kVectorBytes != 0)
    return gather_elements(op, chip);
  return gather(op, chip, software.gathers_by_vectors);
}

}  // namespace ridgeline

// Sorting: rows that fit a block are sorted in it, longer ones by radix over the whole device; the largest few of a row
// are selected digit by digit first. PyTorch 2.11 on an H200: measurements/h200/foreign/ops.jsonl.gz.
#include <algorithm>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/memory_bound/radix_sort.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kBitonicMost = 32, kBlockMost = 4096;

/// A kernel whose blocks each work on rows of their own, in registers and shared memory.
struct BlockSort {
  MemoryBoundKernel kernel = MemoryBoundKernel::sort_block;
  std::string_view name;
  std::int64_t blocks = 1;
  int threads = 32;
  std::int64_t shared = 0;
  double work = 1.0;    ///< of a thread, in keys and steps
  double passes = 1.0;  ///< of a block, one after the other
};

KernelLaunch block_launch(const BlockSort& sort, double read_bytes, double written_bytes) {
  KernelLaunch launch = memory_bound_launch(
      sort.kernel, std::string(sort.name), TimeClass::elementwise, DType::fp32,
      {sort.blocks, 1, sort.threads, 40, sort.shared},
      {.elements = static_cast<double>(sort.blocks) * sort.threads * sort.work, .iterations = sort.passes});
  launch.pipe = Pipe::none;
  launch.reads = {{0, read_bytes}};
  launch.writes = {{1, written_bytes / 2}, {2, written_bytes / 2}};
  return launch;
}

/// Digits of four bits: a pass each of the block's radix sort, of two bits when a block searches.
int digits_of(const Sort& op) { return static_cast<int>(8 * bytes_of(op.type) / 4); }

KernelLaunch sort_in_block(const Sort& op, std::int64_t cols, double bytes) {
  if (cols <= kBitonicMost) {
    // Sixteen rows of 32 places a block, two keys a thread, fifteen exchanges between barriers.
    constexpr double kExchanges = 15.0;
    return block_launch({MemoryBoundKernel::sort_exchange, "bitonicSortKVInPlace", ceil_div(op.rows, 16), 256, 6144,
                         kExchanges, kExchanges},
                        bytes, bytes);
  }
  // Blocks of 32 or 128 threads with 4 or 32 keys a thread, as PyTorch has them. Of each digit a thread ranks its keys
  // one after the other, and the block adds up its counts; then keys and places are exchanged.
  constexpr double kCounts = 4.0;    // the time of so many keys
  constexpr double kExchange = 2.5;  // of so many digits: loads, exchanges and stores
  const std::int64_t padded = cols <= 128 ? 128 : cols <= 1024 ? 1024 : kBlockMost;
  const std::int64_t each = padded <= 128 ? 4 : 32;
  const int threads = static_cast<int>(padded / each);
  const double steps = (kExchange + digits_of(op)) * (kCounts + static_cast<double>(each));
  return block_launch(
      {MemoryBoundKernel::sort_block, "radixSortKVInPlace", op.rows, threads, 12 * padded, steps, steps}, bytes, bytes);
}

/// What puts keys and their places where they are sorted: copies, and the places counted up.
void append_places(const Sort& op, LoweredOp& result) {
  const std::int64_t n = op.rows * op.cols;
  result.launches.push_back(device_copy_launch(op.type, n, 0, 1));
  KernelLaunch places =
      memory_bound_launch(MemoryBoundKernel::fill, "arange", TimeClass::elementwise, DType::int64,
                          {ceil_div(op.cols, 64), 1, 64, 16}, {.elements = static_cast<double>(op.cols)});
  places.writes = {{2, 8.0 * static_cast<double>(op.cols)}};
  result.launches.push_back(std::move(places));
  if (op.rows > 1) {  // repeated for every row
    KernelLaunch repeated = memory_bound_launch(
        MemoryBoundKernel::strided_copy, "copy_permuted", TimeClass::copy, DType::int64, {ceil_div(n, 256), 1, 128, 18},
        {.elements = static_cast<double>(n),
         .padded_elements = static_cast<double>(n) * lines_in_rows(DType::int64),
         .iterations = static_cast<double>(ceil_div(std::min<std::int64_t>(n, 256), 128))});
    repeated.pipe = Pipe::none;
    repeated.reads = {{Access::kTemporary, 8.0 * static_cast<double>(op.cols)}};
    repeated.writes = {{Access::kTemporary, 8.0 * static_cast<double>(n)}};
    result.launches.push_back(std::move(repeated));
  }
  result.launches.push_back(device_copy_launch(DType::int64, n, Access::kTemporary, 2));
}

/// Few long rows: keys of all rows are sorted by value and then, as one digit more, by the row they came from; then
/// each is put in its place.
LoweredOp sort_segments(const Sort& op, const ChipShape& chip) {
  const std::int64_t n = op.rows * op.cols, element = bytes_of(op.type);
  const int digits = static_cast<int>(element);
  LoweredOp result;
  result.launches.push_back(device_copy_launch(op.type, n, 0, 1));
  append_radix_sort({n, digits, digits, 8 * element}, chip, result);
  const std::size_t by_value = result.launches.size();
  append_radix_sort({n, 1, 1, log2_ceil(op.rows)}, chip, result);
  result.launches.erase(result.launches.begin() + static_cast<std::ptrdiff_t>(by_value));  // places are counted once
  const auto pairs = static_cast<double>(n * (element + 8));
  for (KernelLaunch& launch : result.launches)
    if (launch.name == "RadixSortOnesweep")
      launch.reads = {{0, pairs}}, launch.writes = {{1, pairs / 2}, {2, pairs / 2}};
  KernelLaunch placed =
      memory_bound_launch(MemoryBoundKernel::index_select, "sort_postprocess", TimeClass::elementwise, op.type,
                          {ceil_div(n, 512), 1, 128, 32},
                          {.elements = static_cast<double>(n),
                           .active_blocks = static_cast<double>(n) / 512.0,
                           .iterations = static_cast<double>(ceil_div(std::min<std::int64_t>(n, 512), 128))});
  placed.reads = {{Access::kTemporary, pairs}};
  placed.writes = {{1, static_cast<double>(n * element)}, {2, 8.0 * static_cast<double>(n)}};
  result.launches.push_back(std::move(placed));
  return result;
}

/// Many long rows: a block a row counts, ranks and exchanges it, digit after digit (CUB's segmented sort). Digits have
/// five or six bits, as few of five as make up the key.
LoweredOp sort_many_segments(const Sort& op) {
  constexpr std::int64_t kLongDigit = 6;
  constexpr double kDivisions = 110.0;   // instructions of a place: quotient and remainder of 64 bits
  constexpr double kShareOfLong = 0.87;  // of a short digit's time, with half the threads
  const std::int64_t n = op.rows * op.cols, element = bytes_of(op.type), bits = 8 * element;
  const std::int64_t passes = ceil_div(bits, kLongDigit), short_digits = passes * kLongDigit - bits;
  LoweredOp result;
  result.launches.push_back(device_copy_launch(op.type, n, 0, 1));
  KernelLaunch places = memory_bound_launch(MemoryBoundKernel::fill, "fill_reverse_indices", TimeClass::elementwise,
                                            DType::int64, {ceil_div(n, 1024), 1, 1024, 32},
                                            {.elements = static_cast<double>(n), .arithmetic = kDivisions});
  places.writes = {{2, 8.0 * static_cast<double>(n)}};
  result.launches.push_back(std::move(places));
  const auto keys = static_cast<double>(n * element), pairs = keys + 8.0 * static_cast<double>(n);
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    const bool is_short = pass < short_digits;
    KernelLaunch sorted =
        memory_bound_launch(MemoryBoundKernel::sort_segment, "DeviceSegmentedRadixSortKernel", TimeClass::elementwise,
                            op.type, {op.rows, 1, is_short ? 384 : 192, 64, 32768},
                            {.elements = static_cast<double>(n) * (is_short ? 1.0 : kShareOfLong), .iterations = 1.0});
    sorted.pipe = Pipe::none;
    sorted.reads = {{1, pairs, pairs + keys}};
    sorted.writes = {{1, keys}, {2, pairs - keys}};
    result.launches.push_back(std::move(sorted));
  }
  return result;
}

LoweredOp select(const Sort& op, int sms) {
  const std::int64_t n = op.rows * op.cols;
  const double bytes = static_cast<double>(n * bytes_of(op.type)),
               kept = static_cast<double>(op.rows * op.kept * (bytes_of(op.type) + 8));
  // A warp's counts of a digit of two bits, from the highest on, each a sweep over the row. From 1,000 keys on, where
  // rows alone would leave SMs idle, blocks share a row: counts, their sums, what is within the kept, a digit at a
  // time.
  // A sweep ends with its barriers and the counts, which the warps add to the same words one after the other; in loads
  // of a key.
  constexpr double kBarriers = 2.0, kCountsOfWarp = 0.125;
  constexpr std::int64_t kManyBlocks = 1024;
  LoweredOp result;
  if (op.cols <= kManyBlocks || (op.rows < 20 && op.cols <= 20000)) {
    const std::int64_t threads = std::min<std::int64_t>(1024, ceil_div(op.cols, 32) * 32);
    const double sweeps = 2.0 * digits_of(op), keys = static_cast<double>(ceil_div(op.cols, threads));
    result.launches.push_back(block_launch(
        {MemoryBoundKernel::select_block, "gatherTopK", op.rows, static_cast<int>(threads), 1024,
         sweeps * (kBarriers + keys), sweeps * (kBarriers + kCountsOfWarp * static_cast<double>(threads / 32) + keys)},
        bytes, kept));
  } else {
    // 256 threads with 4 to 64 keys each, as many as six blocks an SM leave them (TensorTopK.cu). Steps in round trips
    // of the L2; a key is a load and an addition to a count in shared memory.
    constexpr std::int64_t kThreads = 256, kBlocksOfSm = 6, kFewestKeys = 4, kMostKeys = 64;
    constexpr double kKey = 0.6, kSums = 2.5, kWithinKept = 4.5;
    const std::int64_t keys = std::clamp(ceil_div(n, sms * kBlocksOfSm * kThreads), kFewestKeys, kMostKeys);
    const std::int64_t blocks = op.rows * ceil_div(op.cols, keys * kThreads);
    const auto step = [&](const char* name, std::int64_t grid, double iterations) {
      KernelLaunch launch = memory_bound_launch(MemoryBoundKernel::tiny, name, TimeClass::elementwise, op.type,
                                                {grid, 1, static_cast<int>(kThreads), 40}, {.iterations = iterations});
      launch.pipe = Pipe::none;
      result.launches.push_back(std::move(launch));
    };
    step("fill", ceil_div(op.rows, 2 * kThreads), 0.0);
    result.launches.push_back(memset_launch(0.0, Access::kTemporary));
    result.launches.push_back(memset_launch(0.0, Access::kTemporary));
    for (std::int64_t digit = 0; digit < bytes_of(op.type); ++digit) {
      step("computeBlockDigitCounts", blocks, 1.0 + kKey * static_cast<double>(keys));
      result.launches.back().reads = {{0, bytes}};
      step("computeDigitCumSum", op.rows, kSums);
      step("computeWithinKCounts", blocks, kWithinKept);
    }
    // Where each block writes what it keeps: its keys above the k-th and those equal to it, added up over the row's
    // blocks by CUB, each in round trips.
    constexpr double kEqual = 2.0, kAddedUp = 7.0;
    step("computeBlockwiseKthCounts", ceil_div(blocks, kThreads), kEqual);
    for (int k = 0; k < 2; ++k) {
      step("DeviceScanByKeyInit", 1, 0.0);
      step("DeviceScanByKey", ceil_div(blocks, kThreads * 16), kAddedUp);
    }
    KernelLaunch gather = memory_bound_launch(MemoryBoundKernel::tiny, "gatherTopK", TimeClass::elementwise, op.type,
                                              {blocks, 1, 256, 32}, {.iterations = 12.0});
    gather.reads = {{0, bytes}};
    gather.writes = {{1, kept / 2}, {2, kept / 2}};
    result.launches.push_back(std::move(gather));
  }
  Sort largest = op;
  largest.cols = op.kept;
  if (op.kept > 1 && op.kept <= kBlockMost) result.launches.push_back(sort_in_block(largest, op.kept, kept));
  return result;
}

}  // namespace

LoweredOp lower_sort(const Sort& op, const ChipShape& chip, const Software& /*software*/) {
  if (op.rows < 1 || op.cols < 1 || op.kept < 0 || op.kept > op.cols)
    throw std::invalid_argument("a sort needs keys, and cannot keep more of a row than it has");
  if (op.kept > 0) return select(op, chip.sm.count);
  const std::int64_t n = op.rows * op.cols;
  const double pairs = static_cast<double>(n * (bytes_of(op.type) + 8));
  LoweredOp result;
  if (op.cols <= kBlockMost && op.key_bits == 0) {
    append_places(op, result);
    result.launches.push_back(sort_in_block(op, op.cols, pairs));
    return result;
  }
  constexpr std::int64_t kMostSegments = 128;
  if (op.key_bits == 0 && op.rows > 1 && op.rows < kMostSegments) return sort_segments(op, chip);
  if (op.key_bits == 0 && op.rows > 1) return sort_many_segments(op);
  // Rows of a table are told apart by digits above those of the keys.
  int bits = static_cast<int>(op.key_bits > 0 ? op.key_bits : 8 * bytes_of(op.type));
  if (op.rows > 1) bits += log2_ceil(op.rows);
  const int digits = (bits + 7) / 8;
  append_radix_sort({n, digits, digits, bits}, chip, result);
  for (KernelLaunch& launch : result.launches)
    if (launch.name == "RadixSortOnesweep")
      launch.reads = {{0, pairs}}, launch.writes = {{1, pairs / 2}, {2, pairs / 2}};
  return result;
}

}  // namespace ridgeline

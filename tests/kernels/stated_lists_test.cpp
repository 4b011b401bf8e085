// Sorts, losses, dropout, lists of tensors and rows of tables against docs/model/lowering.md: kernels, blocks, the
// bytes of every operand, the work of a block, over random sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/families.h"
#include "sim/occupancy/occupancy.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;

std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
double of(std::int64_t x) { return static_cast<double>(x); }
const MemoryBoundWork& streamed(const KernelLaunch& launch) { return std::get<MemoryBoundWork>(launch.work); }
std::string named(const KernelLaunch& launch) {
  return std::string(name_of(static_cast<MemoryBoundKernel>(streamed(launch).kernel_class)));
}
const Gpu& hopper() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu;
}
DType drawn_type(Draws& draws) { return std::array{DType::fp32, DType::bf16, DType::fp16}[draws.index(3)]; }
std::int64_t drawn_size(Draws& draws, double most) { return std::llround(draws.between(0.6, most)) + 1; }

TEST(StatedLoss, one_block_gathers_a_sector_a_row_and_the_backward_pass_fills_first) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    NllLoss op{.backward = draws.index(2) == 0,
               .type = drawn_type(draws),
               .rows = drawn_size(draws, 60000),
               .classes = drawn_size(draws, 100000)};
    if (draws.index(2) == 0) op.classes = 1 + static_cast<std::int64_t>(draws.index(40));
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", rows " + std::to_string(op.rows) + ", classes " +
                 std::to_string(op.classes));
    const auto launches = lower_nll_loss(op, hopper(), Software{}).launches;
    const double e = of(bytes_of(op.type)), all = of(op.rows) * of(op.classes) * e;
    const KernelLaunch& loss = launches.back();
    // A thread for 16 rows, as a power of two between a warp and a full block.
    const double threads = loss.threads_per_block, ideal = std::clamp(of(op.rows) / 16.0, 32.0, 1024.0);
    EXPECT_LE(std::abs(std::log2(threads / ideal)), 0.5 + 1e-9);
    EXPECT_EQ(std::exp2(std::round(std::log2(threads))), threads);
    EXPECT_EQ(loss.blocks(), 1.0);
    EXPECT_DOUBLE_EQ(streamed(loss).elements, of(op.rows));
    EXPECT_DOUBLE_EQ(streamed(loss).iterations, of(ceiling(op.rows, loss.threads_per_block)));
    const double touched = of(op.rows) * std::min(32.0, of(op.classes) * e);
    if (op.backward) {
      EXPECT_DOUBLE_EQ(loss.read_bytes(), 8.0 * of(op.rows));
      EXPECT_DOUBLE_EQ(loss.written_bytes(), touched);
      double filled = 0.0, elements = 0.0;
      for (std::size_t k = 0; k + 1 < launches.size(); ++k) {
        EXPECT_EQ(named(launches[k]), "fill");
        filled += launches[k].written_bytes();
        elements += streamed(launches[k]).elements;
        EXPECT_LE(launches[k].written_bytes(), 2147483647.0);
        EXPECT_LE(std::abs(launches[k].blocks() - std::ceil(streamed(launches[k]).elements / 1024.0)), 1.0);
      }
      EXPECT_NEAR(filled, all, 1e-6 * all);
      EXPECT_NEAR(elements, all / e, 1e-6 * all);
      EXPECT_EQ(launches.size() == 2, all <= 2147483647.0);
    } else {
      ASSERT_EQ(launches.size(), 1u);
      EXPECT_DOUBLE_EQ(loss.read_bytes(), touched + 8.0 * of(op.rows));
      EXPECT_DOUBLE_EQ(loss.written_bytes(), 4.0);
      EXPECT_EQ(loss.shared_bytes_per_block, 8 * loss.threads_per_block);
    }
  }
}

TEST(StatedDropout, draws_four_numbers_at_once_by_vectors_or_for_elements_a_grid_apart) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    const Dropout op{drawn_type(draws), drawn_size(draws, 1e8) * static_cast<std::int64_t>(1 << draws.index(4))};
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": " + std::to_string(op.elements));
    const auto launches = lower_dropout(op, hopper(), Software{}).launches;
    ASSERT_EQ(launches.size(), 1u);
    const KernelLaunch& launch = launches[0];
    const MemoryBoundWork& work = streamed(launch);
    const std::int64_t e = bytes_of(op.type), n = op.elements;
    std::int64_t vector = 16 / e;
    while (vector > 1 && n % vector != 0) vector /= 2;
    const std::int64_t grid = std::min(ceiling(n, 256), std::int64_t{8} * hopper().sm.count);
    const std::int64_t turns = ceiling(n, grid * 256 * (vector > 1 ? vector : 4));
    EXPECT_EQ(launch.grid[0], grid);
    EXPECT_EQ(launch.threads_per_block, 256);
    EXPECT_DOUBLE_EQ(work.elements, of(n));
    EXPECT_DOUBLE_EQ(work.padded_elements,
                     vector > 1 ? of(n) / of(vector) : 1.52 * of(turns * std::min(n, grid * 256)));
    EXPECT_DOUBLE_EQ(work.iterations, of(turns * (vector == 8 ? 2 : 1)));
    EXPECT_DOUBLE_EQ(work.tail_steps, vector > 1 ? 0.0 : 1.0);
    // Blocks without elements set up their generators too, as far as they find a place at once.
    const std::int64_t at_once = std::int64_t{hopper().sm.count} * occupancy_of(hopper().sm, launch).blocks;
    EXPECT_DOUBLE_EQ(work.active_blocks,
                     of(std::max(std::min(grid, ceiling(n, 256 * vector)), std::min(grid, at_once))));
    EXPECT_DOUBLE_EQ(launch.read_bytes(), of(n * e));
    EXPECT_DOUBLE_EQ(launch.written_bytes(), of(n * e) + of(n)) << "a mask of bytes";
    EXPECT_DOUBLE_EQ(launch.flops, 2.0 * of(n));
  }
}

/// Rows of `cols` keys sorted in a block each, or sixteen in one.
void expect_sorted_in_blocks(const KernelLaunch& sort, const Sort& op, std::int64_t cols, double bytes) {
  const double digits = 2.0 * static_cast<double>(bytes_of(op.type));  // of four bits
  EXPECT_DOUBLE_EQ(sort.read_bytes(), bytes);
  EXPECT_DOUBLE_EQ(sort.written_bytes(), bytes);
  ASSERT_EQ(sort.writes.size(), 2u);
  EXPECT_DOUBLE_EQ(sort.writes[0].bytes, sort.writes[1].bytes) << "keys and their places";
  const MemoryBoundWork& work = streamed(sort);
  if (cols <= 32) {  // sixteen rows a block, fifteen exchanges
    EXPECT_EQ(named(sort), "sort_exchange");
    EXPECT_EQ(sort.grid[0], ceiling(op.rows, 16));
    EXPECT_DOUBLE_EQ(work.iterations, 15.0);
  } else {
    const std::int64_t padded = cols <= 128 ? 128 : cols <= 1024 ? 1024 : 4096, each = cols <= 128 ? 4 : 32;
    EXPECT_EQ(named(sort), "sort_block");
    EXPECT_EQ(sort.grid[0], op.rows) << "a block a row";
    EXPECT_EQ(sort.threads_per_block, padded / each);
    EXPECT_EQ(sort.shared_bytes_per_block, 12 * padded);
    EXPECT_DOUBLE_EQ(work.iterations, (2.5 + digits) * (4.0 + of(each)));
  }
  EXPECT_DOUBLE_EQ(work.elements, sort.blocks() * sort.threads_per_block * work.iterations);
}

void expect_a_block_a_row(const std::vector<KernelLaunch>& launches, const Sort& op) {
  const double e = of(bytes_of(op.type)), n = of(op.rows * op.cols);
  const auto bits = static_cast<std::int64_t>(8.0 * e), passes = ceiling(bits, 6);
  ASSERT_EQ(launches.size(), 2u + static_cast<std::size_t>(passes));
  std::int64_t sorted_bits = 0;
  for (std::size_t k = 2; k < launches.size(); ++k) {
    EXPECT_EQ(launches[k].grid[0], op.rows);
    sorted_bits += launches[k].threads_per_block == 384 ? 5 : 6;
    EXPECT_DOUBLE_EQ(launches[k].written_bytes(), n * (e + 8.0));
  }
  EXPECT_EQ(sorted_bits, bits);
}

TEST(StatedSort, rows_are_sorted_in_blocks_by_radix_or_the_largest_few_are_picked) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    constexpr std::array kBounds{31, 32, 33, 128, 129, 1024, 1025, 4096, 4097, 20000, 20001};
    Sort op{.type = drawn_type(draws), .rows = drawn_size(draws, 3000), .cols = drawn_size(draws, 60000)};
    if (draws.index(2) == 0) op.cols = kBounds[draws.index(kBounds.size())];
    if (draws.index(2) == 0) op.rows = 1 + static_cast<std::int64_t>(draws.index(25));
    if (draws.index(2) == 0) op.kept = std::min(op.cols, drawn_size(draws, 6000));
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": " + std::to_string(op.rows) + " x " +
                 std::to_string(op.cols) + " keep " + std::to_string(op.kept));
    const auto launches = lower_sort(op, hopper(), Software{}).launches;
    const double e = of(bytes_of(op.type)), n = of(op.rows * op.cols), digits = 2.0 * e;  // of four bits
    if (op.kept > 0) {
      const double kept = of(op.rows * op.kept) * (e + 8.0);
      const std::size_t sorted = op.kept > 1 && op.kept <= 4096 ? 1 : 0;
      if (op.cols <= 1024 || (op.rows < 20 && op.cols <= 20000)) {  // a block a row, a sweep a digit of two bits
        ASSERT_EQ(launches.size(), 1u + sorted);
        const KernelLaunch& pick = launches[0];
        EXPECT_EQ(named(pick), "select_block");
        EXPECT_EQ(pick.grid[0], op.rows);
        EXPECT_EQ(pick.threads_per_block, std::min<std::int64_t>(1024, ceiling(op.cols, 32) * 32));
        const double keys = of(ceiling(op.cols, pick.threads_per_block)), warps = pick.threads_per_block / 32.0;
        EXPECT_DOUBLE_EQ(streamed(pick).iterations, 2.0 * digits * (2.0 + 0.125 * warps + keys));
        EXPECT_DOUBLE_EQ(streamed(pick).elements, of(op.rows) * pick.threads_per_block * 2.0 * digits * (2.0 + keys));
        EXPECT_DOUBLE_EQ(pick.read_bytes(), n * e);
        EXPECT_DOUBLE_EQ(pick.written_bytes(), kept);
      } else {  // many blocks a row: three kernels a byte of the key, then what is kept
        ASSERT_EQ(launches.size(), 3u + static_cast<std::size_t>(3.0 * e) + 5u + 1u + sorted);
        const std::int64_t keys = std::clamp<std::int64_t>(
                               ceiling(op.rows * op.cols, std::int64_t{hopper().sm.count} * 6 * 256), 4, 64),
                           blocks = op.rows * ceiling(op.cols, keys * 256);
        double read = 0.0;
        for (std::size_t k = 3; k < launches.size() - sorted; ++k) {
          const std::string& name = launches[k].name;
          const bool of_blocks = name == "computeBlockwiseKthCounts" || name.starts_with("DeviceScanByKey");
          if (!of_blocks) EXPECT_EQ(launches[k].grid[0], name == "computeDigitCumSum" ? op.rows : blocks);
          read += launches[k].read_bytes();
        }
        EXPECT_DOUBLE_EQ(read, (e + 1.0) * n * e) << "a sweep a byte, and one to gather";
        const KernelLaunch& gather = launches[launches.size() - 1 - sorted];
        EXPECT_DOUBLE_EQ(gather.written_bytes(), kept);
        EXPECT_DOUBLE_EQ(gather.writes[0].bytes, gather.writes[1].bytes);
      }
      if (sorted == 1) expect_sorted_in_blocks(launches.back(), op, op.kept, kept);
    } else if (op.cols <= 4096) {  // keys are copied, places counted up and copied to every row
      const std::size_t repeated = op.rows > 1 ? 1 : 0;
      ASSERT_EQ(launches.size(), 4u + repeated);
      EXPECT_DOUBLE_EQ(launches[0].written_bytes(), n * e);
      EXPECT_DOUBLE_EQ(launches[1].written_bytes(), 8.0 * of(op.cols));
      EXPECT_EQ(launches[1].grid[0], ceiling(op.cols, 64));
      EXPECT_DOUBLE_EQ(launches[2].written_bytes(), 8.0 * n);
      EXPECT_DOUBLE_EQ(launches[2 + repeated].written_bytes(), 8.0 * n);
      expect_sorted_in_blocks(launches[3 + repeated], op, op.cols, n * (e + 8.0));
    } else if (op.rows >= 128) {  // a block a row: digits of six bits, of five as many as make up the key
      expect_a_block_a_row(launches, op);
    } else {  // the device's radix sort, a pass for each eight bits; rows are told apart by bits above
      const bool segments = op.rows > 1;  // by value, then by the row they came from
      double bits = 8.0 * e;
      if (segments) bits += 8.0;
      double passes = 0.0;
      for (const KernelLaunch& launch : launches) {
        if (launch.name != "RadixSortOnesweep") continue;
        ++passes;
        EXPECT_DOUBLE_EQ(launch.read_bytes(), n * (e + 8.0));
        EXPECT_DOUBLE_EQ(launch.written_bytes(), n * (e + 8.0));
        EXPECT_EQ(launch.grid[0], ceiling(op.rows * op.cols, 384 * 12));
        EXPECT_EQ(streamed(launch).iterations, 1.0);
      }
      EXPECT_EQ(passes, std::ceil(bits / 8.0));
      const std::size_t around = segments ? 1u + 5u + 4u + 1u : 5u;  // copies, the second histogram, what puts in place
      EXPECT_EQ(launches.size(), around + 2u * static_cast<std::size_t>(passes)) << "a memset before every pass";
    }
  }
}

using F = MultiTensorFunction;
/// Lists that a function is passed, those it reads and writes, FLOPs an element.
struct ListCall {
  F function;
  int lists, reads, writes;
  double flops;
};
constexpr std::array kCalls{
    ListCall{F::add, 2, 2, 1, 2},          ListCall{F::mul, 1, 1, 1, 1},       ListCall{F::lerp, 2, 2, 1, 3},
    ListCall{F::addcmul, 3, 2, 1, 3},      ListCall{F::addcdiv, 3, 3, 1, 3},   ListCall{F::square_root, 2, 1, 1, 1},
    ListCall{F::fused_adamw, 4, 4, 3, 16}, ListCall{F::fused_sgd, 3, 3, 2, 4}, ListCall{F::copy, 2, 1, 1, 0}};

/// Chunks of 65536 elements, a block each; a launch ends when its blocks or its tensors are used up.
TEST(StatedLists, launches_of_multi_tensor_calls_are_packed_chunk_after_chunk) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i));
    const ListCall call = kCalls[draws.index(kCalls.size())];
    std::vector<std::int64_t> sizes;
    for (std::size_t k = 1 + draws.index(300); k > 0; --k) {
      std::int64_t size = drawn_size(draws, 3e6);
      if (draws.index(3) != 0) size = 4 * ceiling(size, 4);
      sizes.push_back(draws.index(20) == 0 ? 0 : size);
    }
    sizes.push_back(1);
    MultiTensor op{.function = call.function,
                   .type = drawn_type(draws),
                   .sizes = std::make_shared<const std::vector<std::int64_t>>(sizes)};
    op.scalar_per_tensor = call.function == F::mul && draws.index(2) == 0;
    const auto launches = lower_multi_tensor(op, hopper(), Software{}).launches;
    const int most_tensors =
        op.scalar_per_tensor ? 96 : std::array{110, 64, 48, 36, 30}[static_cast<std::size_t>(call.lists - 1)];
    const double e = of(bytes_of(op.type));
    // Chunk after chunk, each a block of 512 threads by vectors of four.
    std::size_t at = 0;
    double elements = 0.0, single = 0.0, passes = 0.0, from = 0.0;
    int blocks = 0, tensors = 0;
    const auto expect_launch = [&](double to) {
      ASSERT_LT(at, launches.size());
      const KernelLaunch& launch = launches[at++];
      const MemoryBoundWork& work = streamed(launch);
      EXPECT_EQ(launch.grid[0], blocks);
      EXPECT_EQ(launch.threads_per_block, 512);
      EXPECT_NEAR(work.elements, elements - single, 0.5);
      EXPECT_NEAR(work.padded_elements, single, 0.5);
      EXPECT_NEAR(work.iterations, passes, 1e-9);
      EXPECT_EQ(work.tail_steps, single > 0.0 ? 1.0 : 0.0);
      EXPECT_NEAR(launch.flops, call.flops * elements, 1.0);
      ASSERT_EQ(launch.reads.size(), static_cast<std::size_t>(call.reads));
      ASSERT_EQ(launch.writes.size(), static_cast<std::size_t>(call.writes));
      for (const auto* accesses : {&launch.reads, &launch.writes})
        for (const Access& access : *accesses) {
          EXPECT_NEAR(access.bytes, elements * e, 1.0);
          EXPECT_NEAR(access.from, from, 1e-9);
          EXPECT_NEAR(access.to, to, 1e-9);
        }
      elements = single = passes = 0.0;
      blocks = tensors = 0;
    };
    double last = 0.0;
    for (std::size_t tensor = 0; tensor < sizes.size() && !HasFatalFailure(); ++tensor) {
      if (sizes[tensor] == 0) continue;
      ++tensors;
      for (std::int64_t begin = 0; begin < sizes[tensor]; begin += 65536) {
        const std::int64_t end = std::min(sizes[tensor], begin + 65536);
        if (blocks == 0) from = of(static_cast<std::int64_t>(tensor)) + of(begin) / of(sizes[tensor]);
        ++blocks;
        elements += of(end - begin);
        const double turns = of(ceiling(end - begin, 2048));
        const bool vectors = sizes[tensor] % 4 == 0;
        single += vectors ? 0.0 : of(end - begin);
        passes = std::max(passes, vectors ? turns : 1.2 * turns);
        last = of(static_cast<std::int64_t>(tensor)) + of(end) / of(sizes[tensor]);
        const bool done = end == sizes[tensor];
        if (blocks == 320 || (tensors == most_tensors && done)) {
          expect_launch(last);
          if (!done) tensors = 1;
        }
      }
    }
    if (blocks > 0) expect_launch(last);
    EXPECT_EQ(at, launches.size());
  }
}

}  // namespace
}  // namespace ridgeline

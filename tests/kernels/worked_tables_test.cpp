// Tables worked out by hand: gathers, their gradients, rows added by index, bags. Every kernel whole.
//
// Tokens are many times the rows of a table, so that every row is touched, and the L2 holds all that is touched, so
// that each is fetched once, except where the test says otherwise.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/kernels/memory_bound/gathered_rows.h"
#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_tables {
namespace {

using testing_support::number_text;

Gpu chip_of_tables() {
  Gpu gpu = testing_support::made_up_chip();
  gpu.l2.capacity = Bytes{1e9};
  return gpu;
}
void expect_kernels(const Op& op, std::string_view listing, const Software& software = {}) {
  testing_support::expect_kernels(op, listing, software, chip_of_tables());
}

Embedding table_of(DType type, std::int64_t tokens, std::int64_t vocabulary, std::int64_t hidden) {
  return {.type = type, .tokens = tokens, .vocabulary = vocabulary, .hidden = hidden};
}
Embedding gradient_of_table(DType type, std::int64_t tokens, std::int64_t vocabulary, std::int64_t hidden) {
  Embedding op = table_of(type, tokens, vocabulary, hidden);
  op.backward = true;
  return op;
}

// Of rows of whole vectors a block of warps takes 512 bytes each, up to 256 threads; of others a thread an element,
// eight apart. A table of 200,000 bytes is half in the L1, one of 96 whole.
TEST(WorkedTables, rows_are_gathered_by_vectors_or_by_elements) {
  expect_kernels(table_of(DType::bf16, 90, 3, 16), R"(
vectorized_gather [gather] elementwise bf16 cores: 90 x 32, 32 registers
  elements 1440; #0:96//2880 #1:720 -> #2:2880)");
  expect_kernels(table_of(DType::fp32, 4000, 125, 400), R"(
vectorized_gather [gather] elementwise fp32 cores: 4000 x 128, 32 registers
  elements 1600000; #0:200000/3200000//6400000 #1:32000 -> #2:6400000)");
  expect_kernels(table_of(DType::bf16, 90, 3, 2056), R"(
vectorized_gather [gather] elementwise bf16 cores: 90,2 x 256, 32 registers
  elements 185040; #0:12336//370080 #1:720 -> #2:370080)");
  expect_kernels(table_of(DType::bf16, 90, 3, 7), R"(
gather [gather_elements] elementwise bf16 cores: 1 x 128, 32 registers
  elements 630 active 0.615234375 passes 5; #0:42/1260 #1:720/5040 -> #2:1260)");
  expect_kernels(table_of(DType::fp32, 900, 3, 7), R"(
gather [gather_elements] elementwise fp32 cores: 7 x 128, 32 registers
  elements 6300 active 6.15234375 passes 8; #0:84/25200 #1:7200/50400 -> #2:25200)");
  Software older;
  older.gathers_by_vectors = false;
  expect_kernels(table_of(DType::bf16, 90, 3, 7), R"(
indexSelectLargeIndex [index_select] elementwise bf16 cores: 5 x 128, 32 registers
  elements 630 passes 0.984375; #0:42//1260 #1:720 -> #2:1260)",
                 older);
  expect_kernels(table_of(DType::fp32, 4000, 125, 400), R"(
indexSelectLargeIndex [index_select] elementwise fp32 cores: 80 x 128, 32 registers
  elements 1600000 passes 156.25; #0:200000/3200000//6400000 #1:32000 -> #2:6400000)",
                 older);
}

/// Without the first 21 kernels: five, then eight digits of 64-bit indices in two each.
std::string behind_the_sort(const Op& op) {
  LoweredOp made = lower_by_shape(op, chip_of_tables(), {});
  EXPECT_EQ(made.launches.at(20).name, "RadixSortOnesweep");
  made.launches.erase(made.launches.begin(), made.launches.begin() + 21);
  return testing_support::text_of(made);
}

// A block of 1,024 threads for 32 columns walks the tokens, 32 a pass.
TEST(WorkedTables, gradients_of_few_tokens_are_walked) {
  expect_kernels(gradient_of_table(DType::bf16, 3072, 30, 33), R"(
fill [fill] elementwise bf16 cores: 1 x 128, 16 registers
  elements 990; -> #2:1980
embedding_backward_feature [embedding_feature] elementwise bf16 cores: 2 x 1024, 27 registers shared 8192
  elements 101376 passes 96; #0:202752 #1:24576/49152 #2:1980 -> #2:1980)");
  EXPECT_EQ(lower_by_shape(gradient_of_table(DType::bf16, 3073, 30, 33), chip_of_tables(), {}).launches.size(), 33u);
}

// 4,000 tokens of 40 rows: 440 partial sums at most, 64 threads for 50 columns; as the rows alone are fewer blocks than
// sixteen an SM, and fewer than a quarter of the partial sums, these are added at once.
TEST(WorkedTables, gradients_of_many_tokens_are_sorted_and_added_atomically) {
  expect_kernels(gradient_of_table(DType::fp32, 4000, 40, 50), R"(
arange [tiny] elementwise int64 no pipe: 63 x 64, 16 registers
  passes 0.5; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
RadixSortHistogram [sort_histogram] elementwise int64 no pipe: 70 x 128, 72 registers shared 8192
  passes 0; ->
RadixSortExclusiveSum [tiny] elementwise int64 no pipe: 8 x 256, 32 registers shared 2336
 ; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
RadixSortOnesweep [sort_pass] elementwise int64 no pipe: 1 x 384, 80 registers shared 38912
 ; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
RadixSortOnesweep [sort_pass] elementwise int64 no pipe: 1 x 384, 80 registers shared 38912
  passes 0; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
RadixSortOnesweep [sort_pass] elementwise int64 no pipe: 1 x 384, 80 registers shared 38912
  passes 0; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
RadixSortOnesweep [sort_pass] elementwise int64 no pipe: 1 x 384, 80 registers shared 38912
  passes 0; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
RadixSortOnesweep [sort_pass] elementwise int64 no pipe: 1 x 384, 80 registers shared 38912
  passes 0; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
RadixSortOnesweep [sort_pass] elementwise int64 no pipe: 1 x 384, 80 registers shared 38912
  passes 0; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
RadixSortOnesweep [sort_pass] elementwise int64 no pipe: 1 x 384, 80 registers shared 38912
  passes 0; ->
Memset elementwise fp32 no pipe: 1 x 128, 32 registers
  memset 0; ->
RadixSortOnesweep [sort_pass] elementwise int64 no pipe: 1 x 384, 80 registers shared 38912
  passes 0; ->
fill [fill] elementwise fp32 cores: 2 x 128, 16 registers
  elements 2000; -> #2:8000
CompactInit [tiny] elementwise int64 no pipe: 1 x 128, 16 registers
  passes 0; ->
UniqueByKeySweep [unique] elementwise int64 no pipe: 1 x 640, 48 registers shared 35840
  passes 0; ->
partials_per_segment [tiny] elementwise int64 no pipe: 2 x 32, 16 registers
  passes 0.6; ->
ScanInit [tiny] elementwise int64 no pipe: 1 x 128, 16 registers
  passes 0; ->
Scan [tiny] elementwise int64 no pipe: 1 x 128, 47 registers shared 7184
  passes 2; ->
num_of_partial_segments [tiny] elementwise int64 no pipe: 1 x 1, 16 registers
  passes 0.7; ->
partial_segment_offset [tiny] elementwise int64 no pipe: 2 x 32, 26 registers
  passes 2.6; ->
partial_to_segment_idx [tiny] elementwise int64 no pipe: 2 x 32, 16 registers
  passes 2.6; ->
compute_grad_weight_atomic [embedding_atomic] elementwise fp32 cores: 440 x 64, 32 registers
  elements 200000 passes 9.09090909; #0:800000 #1:32000 -> #2:8000/88000)");
}

TEST(WorkedTables, gradients_of_16_bits_are_added_in_fp32_and_cast) {
  EXPECT_EQ(behind_the_sort(gradient_of_table(DType::bf16, 8000, 40, 1100)), R"(
fill [fill] elementwise bf16 cores: 43 x 128, 16 registers
  elements 44000; -> #2:88000
CompactInit [tiny] elementwise int64 no pipe: 1 x 128, 16 registers
  passes 0; ->
UniqueByKeySweep [unique] elementwise int64 no pipe: 2 x 640, 48 registers shared 35840
  passes 0; ->
partials_per_segment [tiny] elementwise int64 no pipe: 2 x 32, 16 registers
  passes 0.6; ->
ScanInit [tiny] elementwise int64 no pipe: 1 x 128, 16 registers
  passes 0; ->
Scan [tiny] elementwise int64 no pipe: 1 x 128, 47 registers shared 7184
  passes 2; ->
num_of_partial_segments [tiny] elementwise int64 no pipe: 1 x 1, 16 registers
  passes 0.7; ->
partial_segment_offset [tiny] elementwise int64 no pipe: 2 x 32, 26 registers
  passes 3.2; ->
partial_to_segment_idx [tiny] elementwise int64 no pipe: 2 x 32, 16 registers
  passes 3.2; ->
fill [fill] elementwise fp32 cores: 43 x 128, 16 registers
  elements 44000; -> t:176000
compute_grad_weight_atomic [embedding_atomic] elementwise bf16 cores: 919 x 1024, 32 registers
  elements 8800000 passes 9.52380952; #0:17600000 #1:64000 -> t:176000/3696000
cast [cast_down] copy bf16 cores: 43 x 128, 32 registers
  elements 44000; t:176000 -> #2:88000
temporaries 176000)");
}

TEST(WorkedTables, gradients_of_many_rows_are_summed_and_then_scattered) {
  EXPECT_EQ(behind_the_sort(gradient_of_table(DType::bf16, 40000, 900, 50)), R"(
fill [fill] elementwise bf16 cores: 44 x 128, 16 registers
  elements 45000; -> #2:90000
CompactInit [tiny] elementwise int64 no pipe: 1 x 128, 16 registers
  passes 0; ->
UniqueByKeySweep [unique] elementwise int64 no pipe: 9 x 640, 48 registers shared 35840
  passes 0; ->
partials_per_segment [tiny] elementwise int64 no pipe: 29 x 32, 16 registers
  passes 2; ->
ScanInit [tiny] elementwise int64 no pipe: 1 x 128, 16 registers
  passes 0; ->
Scan [tiny] elementwise int64 no pipe: 2 x 128, 47 registers shared 7184
  passes 3.5; ->
num_of_partial_segments [tiny] elementwise int64 no pipe: 1 x 1, 16 registers
  passes 0.7; ->
partial_segment_offset [tiny] elementwise int64 no pipe: 29 x 32, 26 registers
  passes 2.26666667; ->
compute_grad_weight [embedding_segments] elementwise bf16 cores: 4900 x 64, 32 registers
  elements 2000000 passes 8.16326531; #0:4000000 #1:320000 -> t:980000
sum_and_scatter [embedding_scatter] elementwise bf16 cores: 900 x 64, 24 registers
  elements 245000; t:980000 -> #2:90000
temporaries 320000 8 320000 320000 8 39200 980000)");
  EXPECT_EQ(behind_the_sort(gradient_of_table(DType::fp32, 3500, 3000, 1025)), R"(
fill [fill] elementwise fp32 cores: 3003 x 128, 16 registers
  elements 3075000; -> #2:12300000
CompactInit [tiny] elementwise int64 no pipe: 1 x 128, 16 registers
  passes 0; ->
UniqueByKeySweep [unique] elementwise int64 no pipe: 1 x 640, 48 registers shared 35840
  passes 0; ->
partials_per_segment [tiny] elementwise int64 no pipe: 94 x 32, 16 registers
  passes 2; ->
ScanInit [tiny] elementwise int64 no pipe: 1 x 128, 16 registers
  passes 0; ->
Scan [tiny] elementwise int64 no pipe: 4 x 128, 47 registers shared 7184
  passes 5; ->
num_of_partial_segments [tiny] elementwise int64 no pipe: 1 x 1, 16 registers
  passes 0.7; ->
partial_segment_offset [tiny] elementwise int64 no pipe: 94 x 32, 26 registers
  passes 2.0101656; ->
compute_grad_weight [embedding_segments] elementwise fp32 cores: 3455 x 1024, 32 registers
  elements 3587500 passes 1.44880123; #0:14350000 #1:28000 -> t:9904740.35
sum_and_scatter [embedding_scatter] elementwise fp32 cores: 3094 x 1024, 24 registers
  elements 2476185.09; t:9904740.35 -> #2:8469740.35
temporaries 28000 8 28000 28000 8 26800 13735000)");
  const auto last = [](std::int64_t tokens, std::int64_t vocabulary) {
    return lower_by_shape(gradient_of_table(DType::fp32, tokens, vocabulary, 50), chip_of_tables(), {})
        .launches.back()
        .name;
  };
  // Rows are fewer than a quarter of the partial sums: 533 / 4 of 133, not 534 / 4 of 134.
  EXPECT_EQ(last(4000, 133), "compute_grad_weight_atomic");
  EXPECT_EQ(last(4000, 134), "sum_and_scatter");
  // Sixteen blocks on each of ten SMs.
  EXPECT_EQ(last(40000, 159), "compute_grad_weight_atomic");
  EXPECT_EQ(last(40000, 160), "sum_and_scatter");
}

// 32 rows a block: up to 16 blocks wait less. A scan of 896 rows a block waits 1.5 longer with every doubling, 4 at
// most.
TEST(WorkedTables, small_kernels_wait_longer_for_more_blocks) {
  const auto passes = [](std::string_view name, std::int64_t vocabulary) {
    for (const KernelLaunch& launch :
         lower_by_shape(gradient_of_table(DType::fp32, 9000, vocabulary, 50), chip_of_tables(), {}).launches)
      if (launch.name == name) return std::get<MemoryBoundWork>(launch.work).iterations;
    return 0.0;
  };
  EXPECT_EQ(passes("partials_per_segment", 512), 0.6);
  EXPECT_EQ(passes("partials_per_segment", 513), 2.0);
  EXPECT_EQ(passes("Scan", 896), 2.0);
  EXPECT_EQ(passes("Scan", 897), 3.5);
  EXPECT_EQ(passes("Scan", 1793), 5.0);
  EXPECT_EQ(passes("Scan", 3584), 5.0);
  EXPECT_EQ(passes("Scan", 3585), 6.0);
  EXPECT_EQ(passes("Scan", 9000), 6.0);
  EXPECT_EQ(passes("Scan", 90000), 6.0);
}

// 900 tokens of 30 rows: 30 each, and in the one that gets most of them, 30 + sqrt(2 * 30 * ln 30) + ln(30) / 6.
TEST(WorkedTables, rows_added_by_index_wait_for_the_longest_run) {
  const double run = 30.0 + std::sqrt(60.0 * std::log(30.0)) + std::log(30.0) / 6.0, runs = 900.0 / run / 4.0;
  const auto expect_added = [&](std::int64_t hidden, std::string_view listing, double across) {
    Embedding op = gradient_of_table(DType::fp32, 900, 30, hidden);
    op.accumulates = true;
    expect_kernels(op, fmt::format(fmt::runtime(listing), fmt::arg("active", number_text(across * runs)),
                                   fmt::arg("run", number_text(run))));
  };
  expect_added(1, R"(
indexing_backward [index_put_single] elementwise fp32 cores: 225 x 128, 32 registers
  elements 900 active {active} passes {run}; #0:3600 #1:14400 #2:120/3600 -> #2:120/3600)",
               1.0);
  expect_added(32, R"(
indexing_backward [index_put_narrow] elementwise fp32 cores: 225 x 128, 32 registers
  elements 28800 active {active} passes {run}; #0:115200 #1:14400 #2:3840/115200 -> #2:3840/115200)",
               1.0);
  expect_added(33, R"(
indexing_backward [index_put_rows] elementwise fp32 cores: 225 x 128, 32 registers
  elements 29700 active {active} passes {run}; #0:118800 #1:14400 #2:3960/118800 -> #2:3960/118800)",
               1.0);
  expect_added(129, R"(
indexing_backward [index_put_rows] elementwise fp32 cores: 225,2 x 128, 32 registers
  elements 116100 active {active} passes {run}; #0:464400 #1:14400/28800 #2:15480/464400 -> #2:15480/464400)",
               2.0);
  // One row gets all of 20 tokens, in runs of which there is no quarter; of many rows none gets less than one.
  Embedding one = gradient_of_table(DType::fp32, 20, 1, 5);
  one.accumulates = true;
  expect_kernels(one, R"(
indexing_backward [index_put_narrow] elementwise fp32 cores: 5 x 128, 32 registers
  elements 100 active 1 passes 20; #0:400 #1:320 #2:20/400 -> #2:20/400)");
  Embedding many = gradient_of_table(DType::fp32, 2, 1000000000, 5);
  many.accumulates = true;
  EXPECT_DOUBLE_EQ(std::get<MemoryBoundWork>(lower_by_shape(many, chip_of_tables(), {}).launches[0].work).iterations,
                   2.0)
      << "ln(10^9) / 6 is 3.5, more than the tokens";
}

// A warp a bag, sixteen a block; sums in fp32. Backward a warp a row and as many passes as a row has terms, 32 at most.
TEST(WorkedTables, bags_are_summed_and_their_rows_updated) {
  Embedding sums = table_of(DType::bf16, 900, 30, 20);
  sums.bags = 33;
  expect_kernels(sums, R"(
embedding_bag_forward [gather] elementwise bf16 cores: 3 x 512, 48 registers
  elements 18000; #0:1200/36000 #1:7464 -> #2:2640)");
  Embedding update = gradient_of_table(DType::bf16, 900, 30, 20);
  update.bags = 25;
  expect_kernels(update, R"(
embedding_bag_backward_long [tiny] elementwise bf16 no pipe: 1 x 1024, 64 registers
 ; ->
embedding_bag_backward [embedding_segments] elementwise bf16 cores: 2 x 512, 64 registers
  elements 18000 passes 30; #0:2000/72000 #1:10800 #2:1200 -> #2:1200)");
  update.tokens = 1000;
  expect_kernels(update, R"(
embedding_bag_backward_long [tiny] elementwise bf16 no pipe: 1 x 1024, 64 registers
 ; ->
embedding_bag_backward [embedding_segments] elementwise bf16 cores: 2 x 512, 64 registers
  elements 20000 passes 32; #0:2000/80000 #1:12000 #2:1200 -> #2:1200)");
  update.accumulates = true;
  EXPECT_THROW(expect_kernels(update, ""), std::invalid_argument);
}

TEST(WorkedTables, tables_without_rows_or_tokens_are_refused) {
  for (const Embedding& none :
       {table_of(DType::fp32, 0, 3, 4), table_of(DType::fp32, 2, 0, 4), table_of(DType::fp32, 2, 3, 0)})
    EXPECT_THROW(expect_kernels(none, ""), std::invalid_argument);
  Embedding added = table_of(DType::fp32, 2, 3, 4);
  added.accumulates = true;
  EXPECT_THROW(expect_kernels(added, ""), std::invalid_argument);
}

/// A token's row was last used an exponential time ago, of mean `vocabulary` tokens; it is found where that is within
/// the tokens before it and within `window`.
double found_in(double tokens, double vocabulary, double window) {
  constexpr int kSteps = 200000;
  double sum = 0.0;
  for (int i = 0; i < kSteps; ++i) sum += 1.0 - std::exp(-std::min((i + 0.5) / kSteps * tokens, window) / vocabulary);
  return sum / kSteps;
}

// Of 1,000 tokens in 400 rows of 500 bytes the L2 keeps between 100 and 200 tokens' traffic: an eighth of the ramp
// each.
TEST(WorkedTables, rows_pushed_out_of_the_l2_are_fetched_again) {
  const Gpu gpu = testing_support::made_up_chip();  // 0.5 to 1 MB
  for (const double traffic : {5000.0, 1000.0, 700.0, 100.0}) {
    double found = 0.0;
    for (int i = 0; i < 8; ++i) found += found_in(1000.0, 400.0, (5e5 + 5e5 * (i + 0.5) / 8.0) / traffic) / 8.0;
    EXPECT_NEAR(fetched_rows(1000, 400, traffic, gpu.l2), 1000.0 * (1.0 - found), 1e-3) << traffic;
  }
  EXPECT_NEAR(distinct_rows(1000, 400), 400.0 * (1.0 - std::exp(-2.5)), 1e-9);
  EXPECT_NEAR(distinct_rows(3, 1000000000), 3.0, 1e-6);
}

}  // namespace
}  // namespace ridgeline::worked_tables

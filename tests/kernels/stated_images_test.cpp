// Images, sums and rows of tables against docs/model/lowering.md: kernels, blocks, the bytes of every operand, the work
// of a block, over random sizes.
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

std::int64_t pieces_of(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
double number(std::int64_t x) { return static_cast<double>(x); }
const MemoryBoundWork& stream_in(const KernelLaunch& launch) { return std::get<MemoryBoundWork>(launch.work); }
std::string kind_of(const KernelLaunch& launch) {
  return std::string(name_of(static_cast<MemoryBoundKernel>(stream_in(launch).kernel_class)));
}
const Gpu& gpu() {
  static const Gpu h200 = load_gpu("nvidia-h200-sxm-141gb");
  return h200;
}
std::int64_t below_power(std::int64_t x) {
  std::int64_t power = 1;
  while (2 * power <= x) power *= 2;
  return power;
}

struct ImageDraw {
  ImageOp op;
  double n = 0, bytes = 0, pixels = 0;  ///< of all images; of a channel
};
ImageDraw drawn_image(Draws& draws, ImageFunction function) {
  ImageDraw d;
  d.op = {.function = function,
          .backward = draws.index(2) == 0,
          .channels_last = draws.index(2) == 0,
          .type = std::array{DType::fp32, DType::bf16, DType::fp16}[draws.index(3)]};
  d.op.batch = std::llround(draws.between(1, 200)), d.op.channels = std::llround(draws.between(1, 1500));
  d.op.size = std::llround(draws.between(2, 240));
  d.pixels = number(d.op.batch * d.op.size * d.op.size);
  d.n = d.pixels * number(d.op.channels);
  d.bytes = d.n * number(bytes_of(d.op.type));
  return d;
}
std::string text_of(std::uint64_t seed, const ImageOp& op) {
  return "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ": " + std::to_string(op.batch) + " x " +
         std::to_string(op.channels) + " x " + std::to_string(op.size) + (op.backward ? " backward" : "") + " type " +
         std::to_string(static_cast<int>(op.type));
}

/// Reads of both passes and the write of the last kernel.
void expect_image_bytes(const ImageDraw& d, const KernelLaunch& launch, bool writes) {
  EXPECT_DOUBLE_EQ(launch.read_bytes(), d.bytes * (d.op.backward ? 2.0 : 1.0)) << "with the gradient backward";
  EXPECT_DOUBLE_EQ(launch.written_bytes(), writes ? d.bytes : 0.0);
  EXPECT_EQ(launch.time_class, TimeClass::normalization);
  EXPECT_DOUBLE_EQ(stream_in(launch).elements, d.n);
}

TEST(StatedBatchNorm, cudnns_kernel_keeps_a_channel_on_its_sm_where_it_fits) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    ImageDraw d = drawn_image(draws, ImageFunction::batch_norm);
    if (d.op.type == DType::bf16) continue;
    d.op.channels_last = false;
    SCOPED_TRACE(text_of(seed, d.op));
    const auto launches = lower_image(d.op, gpu(), Software{}).launches;
    ASSERT_EQ(launches.size(), 1u);
    const KernelLaunch& launch = launches[0];
    const MemoryBoundWork& work = stream_in(launch);
    expect_image_bytes(d, launch, true);
    EXPECT_EQ(kind_of(launch), d.op.backward ? "batch_norm_single_backward" : "batch_norm_single");
    EXPECT_EQ(launch.grid[0], d.op.channels) << "a block a channel";
    EXPECT_EQ(launch.threads_per_block, 512);
    // 112 KiB of shared memory, image and gradient backward; 40 KiB more of 16 bits in registers.
    const double e = number(bytes_of(d.op.type)), channel = d.pixels * e;
    const bool fits = channel * (d.op.backward ? 2.0 : 1.0) <= (112.0 + (e == 2.0 ? 40.0 : 0.0)) * 1024.0;
    const double tensors = d.op.backward ? 2.0 : 1.0;
    EXPECT_DOUBLE_EQ(work.reread_bytes, fits ? 0.0 : d.bytes * tensors);
    EXPECT_DOUBLE_EQ(work.reread_row_bytes, channel * tensors);
    EXPECT_DOUBLE_EQ(work.iterations, d.pixels / 2048.0 * (fits ? 1.0 : 2.0) * tensors);
    EXPECT_DOUBLE_EQ(launch.flops, 8.0 * d.n);
    const double rows = number(d.op.batch * pieces_of(d.op.size * d.op.size, 8) * 8) * e * (d.op.backward ? 2.0 : 1.0);
    EXPECT_DOUBLE_EQ(number(launch.shared_bytes_per_block), 144.0 + (fits ? std::min(rows, 112.0 * 1024.0) : 0.0));
  }
}

TEST(StatedBatchNorm, channels_last_has_blocks_of_channels_by_pixels_four_loads_ahead) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    ImageDraw d = drawn_image(draws, ImageFunction::batch_norm);
    d.op.type = DType::bf16, d.op.channels_last = true, d.bytes = 2.0 * d.n;
    SCOPED_TRACE(text_of(seed, d.op));
    const auto launches = lower_image(d.op, gpu(), Software{}).launches;
    const std::size_t cleared = launches.front().name == "fill" ? 1 : 0;
    ASSERT_EQ(launches.size(), cleared + (d.op.backward ? 2u : 3u)) << "sums, an update forward, a sweep";
    const KernelLaunch &sums = launches[cleared], &sweep = launches.back();
    EXPECT_EQ(cleared, sums.grid[1] > 1 ? 1u : 0u) << "counters where rows of blocks meet";
    expect_image_bytes(d, sums, false);
    expect_image_bytes(d, sweep, true);
    EXPECT_EQ(kind_of(sums), d.op.backward ? "batch_norm_sums_last" : "batch_norm_moments_last");
    EXPECT_EQ(kind_of(sweep), d.op.backward ? "batch_norm_gradient_last" : "batch_norm_transform_last");
    const std::int64_t pixels = d.op.batch * d.op.size * d.op.size, channels = below_power(d.op.channels);
    const std::int64_t high = std::min(below_power(pieces_of(pixels, 16)), 512 / std::min<std::int64_t>(32, channels));
    const std::int64_t wide = std::min(channels, 512 / high);
    const std::int64_t down = std::min<std::int64_t>(128, pieces_of(pixels, 16 * high));
    for (const KernelLaunch* launch : {&sums, &sweep}) {
      const std::int64_t rows = launch == &sums && down < 8 ? 1 : down;
      EXPECT_EQ(launch->threads_per_block, wide * high);
      EXPECT_EQ(launch->grid[0], pieces_of(d.op.channels, wide));
      EXPECT_EQ(launch->grid[1], rows);
      EXPECT_DOUBLE_EQ(stream_in(*launch).iterations, number(pieces_of(pixels, rows * high * 4)));
    }
    EXPECT_DOUBLE_EQ(sums.flops, 4.0 * d.n);
    EXPECT_DOUBLE_EQ(sweep.flops, 2.0 * d.n);
  }
}

// cuDNN with channels last: no more blocks than two an SM, however large the images, and both tensors again where they
// were left.
TEST(StatedBatchNorm, channels_last_of_other_types_stay_on_two_blocks_an_sm) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 500 && !HasFailure(); ++i) {
    ImageDraw d = drawn_image(draws, ImageFunction::batch_norm);
    if (d.op.type == DType::bf16) continue;
    d.op.channels_last = true;
    SCOPED_TRACE(text_of(seed, d.op));
    const auto launches = lower_image(d.op, gpu(), Software{}).launches;
    ASSERT_EQ(launches.size(), 2u) << "counters are cleared first";
    const KernelLaunch& launch = launches[1];
    expect_image_bytes(d, launch, true);
    EXPECT_EQ(kind_of(launch), d.op.backward ? "batch_norm_persistent_backward" : "batch_norm_persistent");
    EXPECT_LE(launch.grid[0], 2 * gpu().sm.count);
    EXPECT_DOUBLE_EQ(stream_in(launch).reread_bytes, d.bytes * (d.op.backward ? 2.0 : 1.0));
    EXPECT_DOUBLE_EQ(stream_in(launch).padded_elements, d.op.channels % 4 == 0 ? 0.0 : d.n) << "vectors of channels";
  }
}

TEST(StatedBatchNorm, sixteen_bits_have_statistics_an_update_and_a_transformation) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    ImageDraw d = drawn_image(draws, ImageFunction::batch_norm);
    d.op.type = DType::bf16, d.op.channels_last = false, d.bytes = 2.0 * d.n;
    SCOPED_TRACE(text_of(seed, d.op));
    if (d.op.backward) {
      const auto whole = lower_image(d.op, gpu(), Software{}).launches;
      ASSERT_EQ(whole.size(), 1u) << "all gradients in one kernel";
      EXPECT_EQ(kind_of(whole[0]), "batch_norm_backward");
      expect_image_bytes(d, whole[0], true);
      EXPECT_DOUBLE_EQ(stream_in(whole[0]).reread_bytes, 2.0 * d.bytes) << "both tensors are walked again";
      continue;
    }
    const auto launches = lower_image(d.op, gpu(), Software{}).launches;
    ASSERT_EQ(launches.size(), 3u);
    expect_image_bytes(d, launches[0], false);
    expect_image_bytes(d, launches[2], true);
    EXPECT_EQ(launches[0].grid[0], d.op.channels) << "a block a channel";
    EXPECT_EQ(launches[2].grid[0], d.op.channels);
    EXPECT_EQ(launches[1].grid[0], pieces_of(d.op.channels, 1024));
    EXPECT_NEAR(stream_in(launches[1]).iterations, 1.3 + 1.7 * std::min(1.0, number(d.op.channels) / 1024.0), 1e-12);
    const std::int64_t pixels = d.op.size * d.op.size;
    const auto covering = [](std::int64_t elements) {  // 32 to 512 threads
      std::int64_t threads = 32;
      while (threads < std::min<std::int64_t>(512, elements)) threads *= 2;
      return threads;
    };
    const std::int64_t width = std::max(covering(pixels), std::min<std::int64_t>(64, covering(pixels * d.op.batch)));
    EXPECT_EQ(launches[0].threads_per_block, width * std::max<std::int64_t>(1, 512 / width));
    EXPECT_DOUBLE_EQ(stream_in(launches[0]).iterations,
                     number(pieces_of(pixels, width) * pieces_of(d.op.batch, std::max<std::int64_t>(1, 512 / width))));
    const std::int64_t threads = std::max<std::int64_t>(64, covering(std::max<std::int64_t>(1, pixels / 4)));
    const std::int64_t images = std::clamp<std::int64_t>(256 * 1024 / d.op.channels, 1, d.op.batch);
    EXPECT_EQ(launches[2].threads_per_block, threads);
    EXPECT_EQ(launches[2].grid[1], images);
    EXPECT_DOUBLE_EQ(stream_in(launches[2]).iterations,
                     number(pieces_of(pixels, threads) * pieces_of(d.op.batch, images)));
    EXPECT_DOUBLE_EQ(launches[0].flops + launches[2].flops, 6.0 * d.n);
  }
}

TEST(StatedImages, pooling_has_a_thread_an_output_and_upsampling_threads_that_skip_edges) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    ImageDraw d =
        drawn_image(draws, draws.index(2) == 0 ? ImageFunction::max_pool2d : ImageFunction::upsample_nearest2d);
    SCOPED_TRACE(text_of(seed, d.op));
    const auto launches = lower_image(d.op, gpu(), Software{}).launches;
    const KernelLaunch& launch = launches.back();
    const MemoryBoundWork& work = stream_in(launch);
    const std::int64_t planes = d.op.batch * d.op.channels, half = d.op.size / 2;
    const double outputs = number(planes * half * half), e = number(bytes_of(d.op.type));
    if (d.op.function == ImageFunction::max_pool2d) {
      EXPECT_DOUBLE_EQ(launch.flops, 3.0 * outputs);
      if (d.op.channels_last) continue;  // blocks of channels by pixels
      EXPECT_EQ(launch.threads_per_block, 256);
      ASSERT_EQ(launches.size(), d.op.backward ? 2u : 1u);
      if (d.op.backward) {  // cleared, then a thread an input
        EXPECT_DOUBLE_EQ(launches[0].written_bytes(), d.bytes);
        EXPECT_EQ(launches[0].grid[0], pieces_of(std::llround(d.n), 1024));
        EXPECT_DOUBLE_EQ(launch.blocks(), number(pieces_of(d.op.size * d.op.size, 256) * planes));
        EXPECT_DOUBLE_EQ(launch.read_bytes(), outputs * (e + 8.0)) << "with an index of eight bytes";
        EXPECT_DOUBLE_EQ(launch.written_bytes(), d.bytes);
        EXPECT_DOUBLE_EQ(work.elements, d.n);
      } else {
        EXPECT_DOUBLE_EQ(launch.blocks(), std::ceil(outputs / 256.0));
        EXPECT_DOUBLE_EQ(launch.read_bytes(), d.bytes);
        EXPECT_DOUBLE_EQ(launch.written_bytes(), outputs * (e + 8.0));
        EXPECT_DOUBLE_EQ(work.elements, outputs);
      }
      continue;
    }
    const std::int64_t x = std::min<std::int64_t>(512, below_power(d.op.size)),
                       y = std::min(below_power(d.op.size), 512 / x),
                       z = std::clamp<std::int64_t>(512 / x / y, 1, planes);
    EXPECT_EQ(launch.threads_per_block, x * y * z);
    EXPECT_EQ(launch.grid[0], pieces_of(d.op.size, x));
    EXPECT_EQ(launch.grid[1], pieces_of(d.op.size, y));
    EXPECT_EQ(launch.grid[2], std::min<std::int64_t>(65535, pieces_of(planes, 4 * z)));
    EXPECT_DOUBLE_EQ(work.iterations, number(pieces_of(planes, z * launch.grid[2])));
    EXPECT_DOUBLE_EQ(work.padded_elements, number(pieces_of(d.op.size, x) * x * pieces_of(d.op.size, y) * y * planes));
    EXPECT_DOUBLE_EQ(work.elements, d.n);
    EXPECT_DOUBLE_EQ(launch.read_bytes(), d.op.backward ? d.bytes : d.bytes / 4.0) << "twice the side";
    EXPECT_DOUBLE_EQ(launch.written_bytes(), d.op.backward ? d.bytes / 4.0 : d.bytes);
  }
}

TEST(StatedTables, a_gather_has_blocks_of_vectors_and_fetches_distinct_rows) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    const Embedding op{.type = draws.index(2) == 0 ? DType::bf16 : DType::fp32,
                       .tokens = std::llround(draws.between(1, 100000)),
                       .vocabulary = std::llround(draws.between(2, 200000)),
                       .hidden = std::llround(draws.between(1, 9000)) * (draws.index(2) == 0 ? 1 : 8)};
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i));
    Software software;
    software.gathers_by_vectors = draws.index(3) != 0;
    const auto launches = lower_embedding(op, gpu(), software).launches;
    ASSERT_EQ(launches.size(), 1u);
    const KernelLaunch& launch = launches[0];
    const MemoryBoundWork& work = stream_in(launch);
    const std::int64_t row = op.hidden * bytes_of(op.type);
    const double t = number(op.tokens), n = t * number(op.hidden), all = t * number(row);
    EXPECT_DOUBLE_EQ(work.elements, n);
    EXPECT_DOUBLE_EQ(launch.written_bytes(), all);
    EXPECT_DOUBLE_EQ(launch.reads[0].loaded, all);
    const double fetched = fetched_rows(op.tokens, op.vocabulary, 2.0 * number(row), gpu().l2) * number(row);
    EXPECT_DOUBLE_EQ(launch.reads[0].bytes, fetched);
    EXPECT_DOUBLE_EQ(launch.reads[1].bytes, 8.0 * t);
    if (software.gathers_by_vectors && row % 16 != 0) {  // an element a thread, eight of a block's
      EXPECT_EQ(kind_of(launch), "gather_elements");
      EXPECT_EQ(launch.grid[0], pieces_of(op.tokens * op.hidden, 1024));
      EXPECT_DOUBLE_EQ(work.active_blocks, n / 1024.0);
      EXPECT_DOUBLE_EQ(work.iterations, std::ceil(std::min(n, 1024.0) / 128.0));
      EXPECT_DOUBLE_EQ(launch.reads[0].requested, all);
      EXPECT_DOUBLE_EQ(launch.reads[1].requested, 8.0 * n) << "an index an element";
      continue;
    }
    // The L1 keeps as much of the table as it has room for.
    const double kept = std::min(1.0, gpu().sm.l1_and_shared.value() / (number(op.vocabulary) * number(row)));
    EXPECT_NEAR(launch.reads[0].requested, std::max(fetched, all * (1.0 - kept)), 1e-9 * all);
    if (software.gathers_by_vectors) {
      EXPECT_EQ(kind_of(launch), "gather");
      const std::int64_t threads = std::min<std::int64_t>(256, 32 * pieces_of(row, 512));
      EXPECT_EQ(launch.threads_per_block, threads);
      EXPECT_DOUBLE_EQ(launch.blocks(), number(op.tokens * pieces_of(row, 16 * threads)));
    } else {
      const std::int64_t grid = std::min(pieces_of(op.tokens * op.hidden, 128), std::int64_t{8} * gpu().sm.count);
      EXPECT_EQ(kind_of(launch), "index_select");
      EXPECT_EQ(launch.grid[0], grid);
      EXPECT_DOUBLE_EQ(work.iterations, n / number(128 * grid));
    }
  }
}

/// Rows of a table that random indices touch, and how often a row comes from the DRAM, against indices that are drawn.
TEST(StatedTables, distinct_rows_are_those_of_drawn_indices) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 40; ++i) {
    const auto tokens = std::llround(draws.between(200, 20000)), vocabulary = std::llround(draws.between(100, 40000));
    std::vector<char> seen(static_cast<std::size_t>(vocabulary));
    double distinct = 0.0;
    for (std::int64_t k = 0; k < tokens; ++k) {
      char& row = seen[draws.index(seen.size())];
      distinct += row == 0 ? 1.0 : 0.0;
      row = 1;
    }
    EXPECT_NEAR(distinct_rows(tokens, vocabulary), distinct, 5.0 * std::sqrt(distinct) + 2.0) << seed << ' ' << i;
    EXPECT_LE(distinct_rows(tokens, vocabulary), number(std::min(tokens, vocabulary)));
    // An L2 that holds everything fetches each row once; one that holds nothing fetches one for each token.
    L2Spec all, none;
    all.capacity = Bytes{1e15}, none.capacity = Bytes{1.0};
    EXPECT_NEAR(fetched_rows(tokens, vocabulary, 4096.0, all), distinct_rows(tokens, vocabulary), 1e-6 * distinct);
    EXPECT_NEAR(fetched_rows(tokens, vocabulary, 4096.0, none), number(tokens), 1e-2 * number(tokens));
  }
}

}  // namespace
}  // namespace ridgeline

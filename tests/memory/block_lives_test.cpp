#include "sim/memory/block_lives.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::ProgramBuilder;

constexpr std::int64_t kMiB = 1 << 20;

MemoryOptions recorded(std::int64_t capacity) {
  MemoryOptions options;
  options.capacity = capacity;
  options.record_samples = options.record_history = true;
  return options;
}

/// Weights, small and large; a step: activations and gradients, the former freed first, and fifty small temporaries.
ProgramBuilder step_of_lives() {
  ProgramBuilder builder;
  builder.allocate(40 * kMiB, Category::weights);
  for (int i = 0; i < 20; ++i) builder.allocate(4096, Category::weights);
  for (int step = 0; step < 2; ++step) {
    builder.begin_step();
    const auto activation = builder.allocate(100 * kMiB);
    const auto gradient = builder.allocate(30 * kMiB, Category::gradients);
    for (int i = 0; i < 50; ++i) builder.free(builder.allocate(2048));
    builder.free(activation);
    builder.free(gradient).end_step();
  }
  return builder;
}

std::int64_t alive(const auto& all, std::uint32_t moment) {
  std::int64_t bytes = 0;
  for (const auto& one : all) bytes += one.from <= moment && moment < one.to ? one.bytes : 0;
  return bytes;
}

TEST(BlockLives, at_each_moment_the_blocks_add_up_to_what_the_allocator_counts) {
  const ProgramBuilder builder = step_of_lives();
  const MemoryResult result = run_memory(builder.program(), recorded(1000 * kMiB));
  const BlockLives lives = block_lives(builder.program(), result);
  ASSERT_EQ(lives.moments(), result.samples.size() + 1);
  for (std::size_t i = 0; i < result.samples.size(); ++i) {
    const auto moment = static_cast<std::uint32_t>(i) + 1;
    EXPECT_EQ(alive(lives.blocks, moment), result.samples[i].allocated) << moment;
    EXPECT_EQ(alive(lives.segments, moment), result.samples[i].reserved) << moment;
  }
  EXPECT_EQ(lives.allocated, result.peak_allocated);
  EXPECT_EQ(lives.reserved, result.peak_reserved);
}

TEST(BlockLives, blocks_lie_in_segments_and_never_on_each_other) {
  const ProgramBuilder builder = step_of_lives();
  const MemoryResult result = run_memory(builder.program(), recorded(1000 * kMiB));
  const BlockLives lives = block_lives(builder.program(), result);
  const auto end = [](const auto& one) { return one.address + static_cast<Address>(one.bytes); };
  for (const auto& block : lives.blocks) {
    EXPECT_TRUE(std::any_of(lives.segments.begin(), lives.segments.end(), [&](const auto& segment) {
      return segment.address <= block.address && end(block) <= end(segment);
    }));
    for (const auto& other : lives.blocks) {
      if (&other == &block || other.to <= block.from || block.to <= other.from) continue;
      EXPECT_TRUE(end(other) <= block.address || end(block) <= other.address);
    }
  }
  // The small weights come together and stay together: one entry.
  const auto small =
      std::find_if(lives.blocks.begin(), lives.blocks.end(), [](const auto& b) { return b.count == 20; });
  ASSERT_NE(small, lives.blocks.end());
  EXPECT_EQ(small->bytes, 20 * 4096);
  EXPECT_EQ(lives.makers[small->maker].op, "set-up");
}

TEST(BlockLives, of_a_long_run_the_moments_around_the_peak_are_told) {
  const ProgramBuilder builder = step_of_lives();
  const MemoryResult result = run_memory(builder.program(), recorded(1000 * kMiB));
  const BlockLives all = block_lives(builder.program(), result), some = block_lives(builder.program(), result, 10);
  EXPECT_EQ(some.moments(), 11u);
  EXPECT_EQ(some.cut_before + some.cut_after + 10, all.moments() - 1);
  EXPECT_EQ(some.allocated, all.allocated);
  EXPECT_EQ(some.reserved, all.reserved);
  EXPECT_EQ(some.peak + some.cut_before, all.peak);
}

TEST(BlockLives, a_run_out_of_memory_is_told_from_its_begin_to_the_request_that_failed) {
  const ProgramBuilder builder = step_of_lives();
  const MemoryResult result = run_memory(builder.program(), recorded(120 * kMiB));
  ASSERT_TRUE(result.failure);
  const BlockLives lives = block_lives(builder.program(), result);
  EXPECT_EQ(lives.actions.back(), result.failure->moment.action);
  const std::uint32_t last = lives.moments() - 1;
  EXPECT_EQ(alive(lives.blocks, last), result.failure->details.allocated);
  EXPECT_EQ(alive(lives.segments, last), result.failure->details.reserved);
}

}  // namespace
}  // namespace ridgeline

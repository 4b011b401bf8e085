#include <gtest/gtest.h>

#include <numeric>
#include <utility>
#include <vector>

#include "sim/memory/memory_run.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::ProgramBuilder;

constexpr std::int64_t kMebi = 1 << 20;

MemoryOptions device_of(std::int64_t capacity, std::int64_t context = 0) {
  MemoryOptions options;
  options.capacity = capacity;
  options.context = context;
  return options;
}

/// Weights of 40 MiB; a step: activations of 100 MiB, gradients of 40 MiB, both freed; the first also makes states of
/// 80 MiB.
ProgramBuilder training(std::int64_t activations = 100 * kMebi) {
  ProgramBuilder builder;
  builder.allocate(40 * kMebi, Category::weights);
  for (int step = 0; step < 2; ++step) {
    builder.begin_step();
    const auto activation = builder.allocate(activations);
    const auto gradient = builder.allocate(40 * kMebi, Category::gradients);
    builder.free(activation);
    if (step == 0) builder.allocate(80 * kMebi, Category::optimizer_state);
    builder.free(gradient).end_step();
  }
  return builder;
}

TEST(MemoryRun, the_peak_is_that_of_the_second_step_where_optimizer_states_exist) {
  const ProgramBuilder builder = training();
  const MemoryResult result = run_memory(builder.program(), device_of(1000 * kMebi, 50 * kMebi));
  EXPECT_EQ(result.first_step_peak_allocated, 180 * kMebi);
  EXPECT_EQ(result.peak_allocated, (40 + 80 + 100 + 40) * kMebi);
  EXPECT_EQ(result.device_used, result.peak_reserved + 50 * kMebi);
  EXPECT_TRUE(result.fits);
}

TEST(MemoryRun, the_breakdown_sums_to_the_peak) {
  const ProgramBuilder builder = training();
  const MemoryResult result = run_memory(builder.program(), device_of(1000 * kMebi));
  EXPECT_EQ(std::accumulate(result.breakdown.begin(), result.breakdown.end(), std::int64_t{0}), result.peak_allocated);
  EXPECT_EQ(result.breakdown[static_cast<std::size_t>(Category::optimizer_state)], 80 * kMebi);
  EXPECT_EQ(result.cached_unused, result.peak_reserved - result.peak_allocated);
}

TEST(MemoryRun, fits_a_device_of_exactly_what_it_uses_and_not_one_a_page_smaller) {
  const ProgramBuilder builder = training();
  const std::int64_t used = run_memory(builder.program(), device_of(10000 * kMebi, 50 * kMebi)).device_used;
  EXPECT_TRUE(run_memory(builder.program(), device_of(used, 50 * kMebi)).fits);
  const MemoryResult failed = run_memory(builder.program(), device_of(used - 2 * kMebi, 50 * kMebi));
  EXPECT_FALSE(failed.fits);
  ASSERT_TRUE(failed.failure);
  EXPECT_EQ(failed.failure->details.missing, 2 * kMebi);
  EXPECT_EQ(failed.failure->moment.step, 2);
}

TEST(MemoryRun, stops_when_the_allocators_state_repeats) {
  const ProgramBuilder builder = training();
  EXPECT_LE(run_memory(builder.program(), device_of(1000 * kMebi)).steps_run, 4);
}

TEST(MemoryRun, a_storage_carried_from_step_to_step_is_freed_each_time) {
  // The loss of a step lives until the next one begins.
  ProgramBuilder builder;
  std::uint32_t loss = 0;
  for (int step = 0; step < 2; ++step) {
    builder.begin_step();
    if (step > 0) builder.free(loss);
    loss = builder.allocate(30 * kMebi);
    builder.end_step();
  }
  const MemoryResult result = run_memory(builder.program(), device_of(1000 * kMebi));
  EXPECT_EQ(result.peak_allocated, 30 * kMebi);
  EXPECT_EQ(result.statistics.all.allocation.current, 1);
}

TEST(MemoryRun, storages_carried_from_step_to_step_take_the_places_of_their_size) {
  // Two of them, and one from before that goes in the last step for good.
  ProgramBuilder builder;
  const std::uint32_t old = builder.allocate(7 * kMebi);
  std::uint32_t loss = 0, scores = 0;
  for (int step = 0; step < 2; ++step) {
    builder.begin_step();
    if (step > 0) builder.free(scores).free(loss).free(old);
    loss = builder.allocate(30 * kMebi);
    scores = builder.allocate(50 * kMebi);
    builder.end_step();
  }
  const MemoryResult result = run_memory(builder.program(), device_of(1000 * kMebi));
  EXPECT_EQ(result.first_step_peak_allocated, 87 * kMebi);
  EXPECT_EQ(result.statistics.all.allocation.current, 2);
  EXPECT_EQ(result.statistics.all.allocated_bytes.current, 80 * kMebi);
}

TEST(MemoryRun, one_step_alone_gives_its_own_peak) {
  ProgramBuilder builder;
  builder.begin_step();
  builder.allocate(30 * kMebi);
  builder.end_step();
  EXPECT_EQ(run_memory(builder.program(), device_of(1000 * kMebi)).peak_allocated, 30 * kMebi);
}

TEST(MemoryRun, samples_follow_every_allocation_of_the_steady_step) {
  const ProgramBuilder builder = training();
  MemoryOptions options = device_of(1000 * kMebi);
  options.record_samples = true;
  const MemoryResult result = run_memory(builder.program(), options);
  ASSERT_EQ(result.samples.size(), 4u);
  EXPECT_EQ(result.samples[1].allocated, result.peak_allocated);
  EXPECT_EQ(result.samples[1].action, result.peak.action);
  EXPECT_FALSE(result.segments.empty());
}

/// Steps that allocate and free at random, each what the others do; the first makes states too. Every second seed's
/// steps leave some storages to the next one, which frees them first.
ProgramBuilder random_training(std::uint32_t seed) {
  const std::size_t most_left = seed % 2 * 8;
  const auto next = [&](std::uint32_t below) { return (seed = seed * 1664525u + 1013904223u) / 65536 % below; };
  std::vector<std::pair<std::int64_t, Category>> sizes;
  std::vector<std::uint32_t> frees;  // after each allocation: how many of those alive go
  for (int i = 0; i < 60; ++i) {
    sizes.emplace_back(next(3) == 0 ? 512 * (1 + next(3000)) : kMebi * (1 + next(40)), static_cast<Category>(next(7)));
    frees.push_back(next(3));
  }
  ProgramBuilder builder;
  for (int i = 0; i < 5; ++i) builder.allocate(kMebi * (1 + next(9)), Category::weights);
  std::vector<std::uint32_t> left;
  for (int step = 0; step < 2; ++step) {
    std::vector<std::uint32_t> alive;
    builder.begin_step();
    for (const std::uint32_t storage : left) builder.free(storage);
    left.clear();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (step == 0 && i % 25 == 24) builder.allocate(700 * 1024 * static_cast<std::int64_t>(i % 7 + 1));
      alive.push_back(builder.allocate(sizes[i].first, sizes[i].second));
      for (std::uint32_t k = 0; k < frees[i] && alive.size() > 3; ++k) {
        builder.free(alive[alive.size() / 2]);
        alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(alive.size() / 2));
      }
    }
    for (const std::uint32_t storage : alive) {
      if (left.size() < most_left) left.push_back(storage);
      else builder.free(storage);
    }
    builder.end_step();
  }
  return builder;
}

TEST(MemoryRun, says_the_same_whether_it_is_written_down_or_only_held) {
  int more_steps = 0;
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    const ProgramBuilder builder = random_training(seed);
    for (const std::int64_t capacity : {100000 * kMebi, 250 * kMebi, 120 * kMebi}) {
      MemoryOptions held = device_of(capacity, 3 * kMebi), written = held;
      held.counts = Counts::held;
      written.record_history = true;
      const MemoryResult a = run_memory(builder.program(), held), b = run_memory(builder.program(), written);
      EXPECT_EQ(a.fits, b.fits) << seed;
      EXPECT_EQ(a.peak_allocated, b.peak_allocated) << seed;
      EXPECT_EQ(a.peak_reserved, b.peak_reserved) << seed;
      EXPECT_EQ(a.first_step_peak_allocated, b.first_step_peak_allocated) << seed;
      EXPECT_EQ(a.first_step_peak_reserved, b.first_step_peak_reserved) << seed;
      EXPECT_EQ(a.breakdown, b.breakdown) << seed;
      EXPECT_EQ(a.peak.action, b.peak.action) << seed;
      EXPECT_EQ(a.peak.step, b.peak.step) << seed;
      EXPECT_EQ(a.steps_run, b.steps_run) << seed;
      more_steps += a.fits && a.steps_run > 2 ? 1 : 0;
      ASSERT_EQ(a.failure.has_value(), b.failure.has_value()) << seed;
      if (!a.failure) continue;
      EXPECT_EQ(a.failure->moment.action, b.failure->moment.action) << seed;
      EXPECT_EQ(a.failure->details.missing, b.failure->details.missing) << seed;
      EXPECT_EQ(a.failure->held, b.failure->held) << seed;
    }
  }
  EXPECT_GT(more_steps, 10);
}

}  // namespace
}  // namespace ridgeline

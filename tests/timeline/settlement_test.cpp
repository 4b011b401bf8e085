// How much of a step of several streams is played: runs that are alike stand for each other.
#include <gtest/gtest.h>

#include "sim/timeline/settlement.h"
#include "tests/support/step_program_builder.h"
#include "tests/timeline/made_steps.h"

namespace ridgeline {
namespace {

using slow_timeline::Held;
using slow_timeline::Parts;
using slow_timeline::Thing;
using testing_support::round_gpu;
using testing_support::round_host;

/// A launch in front, a micro-batch of two launches on two streams that runs so many times behind a first, one behind.
Parts of_two_launches(std::int64_t runs, double us) {
  Parts parts;
  parts.streams = 2;
  parts.runs = runs;
  for (std::uint32_t i = 0; i < 4; ++i) {
    KernelLaunch launch;
    launch.work = MemoryBoundWork{};
    parts.launches.push_back(launch);
    KernelTime time;
    time.time = microseconds(us + i);
    parts.times.push_back(time);
  }
  const auto launched = [](std::uint32_t which, std::uint8_t stream) {
    Thing thing{Action::Kind::launch, stream};
    thing.launch = which;
    return thing;
  };
  const Thing work{Action::Kind::host, 0, HostClass::linear, 1};
  parts.begin = {work, launched(0, 0)};
  parts.run = {work, launched(1, 0), launched(2, 1)};
  parts.end = {work, launched(3, 0)};
  return parts;
}

Settlement settled(const Parts& parts) {
  const Held held(parts);
  const Gpu gpu = round_gpu();
  return settle_step(held.program, StepLoad(held.program, held.times, gpu), gpu, round_host(), {}, Spans::kept);
}

// Launches: one in front, two of the micro-batch written out, two of each run that is played, one behind.
TEST(Settlement, OfManyRunsThatAreAlikeTenArePlayed) {
  const Settlement step = settled(of_two_launches(100, 2));
  EXPECT_EQ(step.plan.launches.size(), 1u + 2 + 10 * 2 + 1);
  EXPECT_EQ(step.run.spans.size(), step.plan.launches.size());
  EXPECT_EQ(step.durations.size(), step.plan.launches.size());
  EXPECT_EQ(step.repeat.begin, 3u);
  EXPECT_EQ(step.repeat.end, 5u);
  EXPECT_EQ(step.repeat.times, 100);
  EXPECT_EQ(step.written.begin, 3u);
  EXPECT_EQ(step.written.end, 5u);
  EXPECT_EQ(step.written.times, 10);
  // Three settle, then four are compared, the last of which stands for itself and 90 that are not played.
  EXPECT_EQ(step.plan.repeat.begin, 3u + 6 * 2);
  EXPECT_EQ(step.plan.repeat.end, 3u + 7 * 2);
  EXPECT_EQ(step.plan.repeat.times, 91);
  // The host takes 10 us a micro-batch, the kernels less.
  EXPECT_NEAR(step.run.unplayed * 1e6, 90 * 10, 1e-6);
  EXPECT_NEAR(step.run.step * 1e6, (1 + 1 + 100 + 1) * 10, 1e-6);
}

TEST(Settlement, TwelveRunsAreAllPlayedAndThirteenAreNot) {
  const Settlement all = settled(of_two_launches(12, 2));
  EXPECT_EQ(all.plan.launches.size(), 1u + 2 + 12 * 2 + 1);
  EXPECT_EQ(all.written.times, 12);
  EXPECT_EQ(all.plan.repeat.times, 1);
  EXPECT_EQ(all.run.unplayed, 0.0);
  const Settlement some = settled(of_two_launches(13, 2));
  EXPECT_EQ(some.plan.launches.size(), 1u + 2 + 10 * 2 + 1);
  EXPECT_EQ(some.plan.repeat.times, 4);
  EXPECT_NEAR(some.run.unplayed * 1e6, 3 * 10, 1e-6);
}

// Where the GPU is slow the host runs ahead: what was issued before the compared runs is not done when they are.
TEST(Settlement, RunsThatAHostIsFarAheadOfAreAllPlayed) {
  const Settlement step = settled(of_two_launches(100, 50));
  EXPECT_EQ(step.plan.launches.size(), 1u + 2 + 100 * 2 + 1);
  EXPECT_EQ(step.written.times, 100);
  EXPECT_EQ(step.run.unplayed, 0.0);
}

// What the step before gave another stream may still run then.
TEST(Settlement, RunsBesideWhatTheStepBeforeLeftRunningAreAllPlayed) {
  for (const bool long_after : {false, true}) {
    Parts parts = of_two_launches(100, 2);
    parts.streams = 3;
    parts.end.back().stream = 2;  // the last kernel, alone there
    parts.times.back().time = microseconds(long_after ? 300 : 20);
    const Settlement step = settled(parts);
    EXPECT_EQ(step.written.times, long_after ? 100 : 10);
    EXPECT_NEAR(step.run.step * 1e6, (1 + 1 + 100 + 1) * 10, 1e-6) << "nothing waits for it";
  }
}

// A step of one stream holds a repeated micro-batch once.
TEST(Settlement, OfOneStreamNothingIsWrittenOut) {
  Parts parts = of_two_launches(100, 2);
  parts.streams = 0;
  parts.run.pop_back();
  const Settlement step = settled(parts);
  EXPECT_EQ(step.plan.launches.size(), 4u);
  EXPECT_EQ(step.plan.repeat.times, 100);
  EXPECT_EQ(step.written.times, 1);
  EXPECT_EQ(step.repeat.times, 100);
}

TEST(Settlement, StepsAreTwoAtLeastAndAsManyAsAskedAtMost) {
  const Parts parts = of_two_launches(5, 50);  // its host runs ahead further with every step
  const Held held(parts);
  Gpu gpu = round_gpu();
  gpu.launch.queue_depth = 10000;
  const StepLoad load(held.program, held.times, gpu);
  for (const int most : {0, 1, 2, 3, 7}) {
    TimelineOptions options;
    options.most_steps = most;
    EXPECT_EQ(settle_step(held.program, load, gpu, round_host(), options, Spans::kept).run.steps, std::max(2, most));
  }
}

}  // namespace
}  // namespace ridgeline

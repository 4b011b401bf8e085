// The recurrence over streams: with one stream it is the single-GPU recurrence to the bit; with several it does what a
// slow and obvious simulation of queues and events does.
#include "sim/timeline/stream_recurrence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/timeline/timeline.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

IssuePlan random_plan(std::mt19937_64& random, std::size_t launches, std::size_t streams) {
  std::uniform_real_distribution<double> cost(0.0, 5e-6);
  std::uniform_int_distribution<std::size_t> any(0, 99);
  IssuePlan plan;
  plan.streams = streams;
  for (std::size_t i = 0; i < launches; ++i) {
    Issue issue;
    issue.host = cost(random);
    issue.gap = 0.2 * cost(random);
    issue.stream = static_cast<std::uint8_t>(any(random) % streams);
    issue.wait_before = any(random) < 3;
    issue.host_before_wait = issue.wait_before ? cost(random) : 0.0;
    plan.launches.push_back(issue);
    if (any(random) < 30) {
      const auto from = static_cast<std::uint8_t>(any(random) % streams),
                 to = static_cast<std::uint8_t>(any(random) % streams);
      const auto event = static_cast<std::uint32_t>(plan.events++);
      plan.order.push_back({StreamPoint::Kind::record_event, from, event});
      plan.order.push_back({StreamPoint::Kind::wait_event, to, event});
    }
    plan.order.push_back({StreamPoint::Kind::launch, issue.stream, static_cast<std::uint32_t>(i)});
  }
  plan.tail.host = cost(random);
  return plan;
}

std::vector<double> random_durations(std::mt19937_64& random, std::size_t launches) {
  std::uniform_real_distribution<double> duration(0.0, 1e-5);
  std::vector<double> result(launches);
  for (double& d : result) d = duration(random);
  return result;
}

TEST(StreamRecurrence, with_one_stream_is_the_recurrence_of_one_to_the_bit) {
  std::mt19937_64 random(20261123);
  for (int i = 0; i < 50; ++i) {
    IssuePlan plan = random_plan(random, 200, 1);
    const std::vector<double> durations = random_durations(random, 200);
    StreamRecurrence streams(1, plan.events, 16, 2e-6);
    Recurrence one(16, 2e-6);
    std::vector<Recurrence::Span> a(200), b(200);
    for (int step = 0; step < 3; ++step) {
      const Recurrence::Step of_streams = streams.step(plan, durations, a);
      const Recurrence::Step of_one = one.step(plan, durations, b);
      EXPECT_EQ(of_streams.starved, of_one.starved);
      EXPECT_EQ(streams.host(), one.host());
      EXPECT_EQ(streams.gpu(), one.gpu());
      for (std::size_t k = 0; k < a.size(); ++k) {
        EXPECT_EQ(a[k].start, b[k].start);
        EXPECT_EQ(a[k].end, b[k].end);
      }
    }
  }
}

/// Every start from its definition: the latest of all that comes before it. `starved`: what kernels of the default
/// stream wait for the host: beyond that, and, where the latest is work of another stream that itself began when the
/// host gave it, until it was given.
std::vector<double> slow_starts(const IssuePlan& plan, const std::vector<double>& durations, std::size_t depth,
                                double latency, double& starved) {
  struct Moment {
    double at = 0.0, given = 0.0;  // given: the last time at which the host held up what led to it
  };
  std::vector<double> starts(durations.size(), 0.0);
  std::vector<Moment> ends(durations.size());
  std::vector<std::vector<std::size_t>> given(plan.streams);    // launches of a stream so far
  std::vector<std::vector<std::uint32_t>> waits(plan.streams);  // events it waits for so far
  std::vector<Moment> events(plan.events);
  const auto waited_for = [&](std::size_t stream) {
    Moment latest;
    for (const std::uint32_t event : waits[stream])
      if (events[event].at > latest.at) latest = events[event];
    return latest;
  };
  const auto done = [&](std::size_t stream) {
    const Moment own = given[stream].empty() ? Moment{} : ends[given[stream].back()], others = waited_for(stream);
    return own.at > others.at ? own : others;
  };
  double host = 0.0;
  for (const StreamPoint& point : plan.order) {
    if (point.kind == StreamPoint::Kind::record_event) events[point.index] = done(point.stream);
    if (point.kind == StreamPoint::Kind::wait_event) waits[point.stream].push_back(point.index);
    if (point.kind != StreamPoint::Kind::launch) continue;
    const Issue& issue = plan.launches[point.index];
    if (issue.wait_before) {
      double all = 0.0;
      for (std::size_t stream = 0; stream < plan.streams; ++stream) all = std::max(all, done(stream).at);
      host = std::max(host + issue.host_before_wait, all + latency);
    }
    host += issue.host;
    auto& own = given[point.stream];
    if (own.size() >= depth) host = std::max(host, starts[own[own.size() - depth]]);
    Moment free = own.empty() ? Moment{} : ends[own.back()];
    free.at += issue.gap;
    const double of_stream = free.at;
    if (const Moment others = waited_for(point.stream); others.at > free.at) free = others;
    const double start = std::max(free.at, host + latency);
    if (point.stream == 0) {
      starved += start - free.at;
      if (free.at > of_stream) starved += std::max(0.0, free.given - of_stream);
    }
    starts[point.index] = start;
    ends[point.index] = {start + durations[point.index], start > free.at ? start : free.given};
    own.push_back(point.index);
  }
  return starts;
}

// The host works 10 us, gives a copy of 4 us to the other stream, and a kernel that waits for it to the default one:
// of the 14 us that the default stream is idle, the host makes it wait for 10.
TEST(StreamRecurrence, a_stream_behind_a_copy_that_is_given_late_waits_for_the_host) {
  constexpr double kMicro = 1e-6;
  IssuePlan plan;
  plan.streams = 2;
  plan.events = 1;
  Issue copy, kernel;
  copy.host = 10 * kMicro;
  copy.stream = 1;
  plan.launches = {copy, kernel};
  plan.order = {{StreamPoint::Kind::launch, 1, 0},
                {StreamPoint::Kind::record_event, 1, 0},
                {StreamPoint::Kind::wait_event, 0, 0},
                {StreamPoint::Kind::launch, 0, 1}};
  StreamRecurrence streams(2, 1, 16, 0.0);
  std::vector<Recurrence::Span> spans(2);
  const Recurrence::Step step = streams.step(plan, std::vector<double>{4 * kMicro, kMicro}, spans);
  EXPECT_DOUBLE_EQ(spans[1].start, 14 * kMicro);
  EXPECT_DOUBLE_EQ(step.starved, 10 * kMicro);
}

TEST(StreamRecurrence, starts_every_kernel_when_the_last_thing_before_it_is_done) {
  std::mt19937_64 random(20261123);
  for (int i = 0; i < 60; ++i) {
    const std::size_t streams = 2 + static_cast<std::size_t>(i % 4);
    const IssuePlan plan = random_plan(random, 150, streams);
    const std::vector<double> durations = random_durations(random, 150);
    StreamRecurrence recurrence(streams, plan.events, 4, 2e-6);
    std::vector<Recurrence::Span> spans(150);
    const Recurrence::Step step = recurrence.step(plan, durations, spans);
    double starved = 0.0;
    const std::vector<double> expected = slow_starts(plan, durations, 4, 2e-6, starved);
    ASSERT_NEAR(step.starved, starved, 1e-12) << i;
    for (std::size_t k = 0; k < spans.size(); ++k) ASSERT_DOUBLE_EQ(spans[k].start, expected[k]) << i << " " << k;
  }
}

}  // namespace
}  // namespace ridgeline

// What kernels of several streams add to a step, and how they slow each other, against counting moment by moment.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/timeline/timeline.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::round_gpu;

/// Spans at whole seconds; kernels of a stream follow each other.
struct Streams {
  IssuePlan plan;
  std::vector<Recurrence::Span> spans;

  Streams(std::mt19937_64& random, std::size_t streams, std::size_t kernels) {
    std::uniform_int_distribution<int> gap(0, 3), length(0, 5);
    std::vector<double> end(streams, 0.0);
    plan.streams = streams;
    for (std::size_t i = 0; i < kernels; ++i) {
      Issue issue;
      issue.stream = static_cast<std::uint8_t>(random() % streams);
      plan.launches.push_back(issue);
      plan.order.push_back({StreamPoint::Kind::launch, issue.stream, static_cast<std::uint32_t>(i)});
      const double start = end[issue.stream] + gap(random);
      spans.push_back({0.0, start, end[issue.stream] = start + length(random)});
    }
  }
};

TEST(ExposedSpans, are_the_seconds_in_which_no_stream_before_runs) {
  std::mt19937_64 random(20261130);
  for (const std::size_t streams : {1, 2, 3, 5}) {
    for (int draw = 0; draw < 40; ++draw) {
      const Streams made(random, streams, 25);
      const std::vector<double> exposed = exposed_spans(made.plan, made.spans);
      ASSERT_EQ(exposed.size(), 25u);
      for (std::size_t i = 0; i < made.spans.size(); ++i) {
        int alone = 0;
        for (double second = made.spans[i].start; second < made.spans[i].end; ++second) {
          bool busy = false;
          for (std::size_t k = 0; k < made.spans.size(); ++k)
            busy = busy || (made.plan.launches[k].stream < made.plan.launches[i].stream &&
                            made.spans[k].start <= second && second < made.spans[k].end);
          alone += !busy;
        }
        EXPECT_EQ(exposed[i], alone) << streams << " streams, kernel " << i;
      }
    }
  }
}

TEST(ExposedSpans, of_one_stream_are_whole) {
  IssuePlan plan;
  plan.launches.resize(2);
  const std::vector<Recurrence::Span> spans{{0, 1, 3}, {0, 2, 7}};
  EXPECT_EQ(exposed_spans(plan, spans), (std::vector<double>{2, 5}));
}

/// Each pair has a factor of its own; a collective waits a tenth of what the kernel under it has run.
class EachPair final : public Contention {
 public:
  [[nodiscard]] double of_kernel(std::size_t kernel, std::size_t collective) const override {
    return 1.0 + 0.1 * static_cast<double>(kernel + 1) + 0.01 * static_cast<double>(collective);
  }
  [[nodiscard]] double of_collective(std::size_t collective, std::size_t kernel) const override {
    return 1.5 + 0.1 * static_cast<double>(kernel) + 0.02 * static_cast<double>(collective);
  }
  [[nodiscard]] Seconds wait_for_room(std::size_t, std::size_t, Seconds elapsed) const override {
    return elapsed * 0.1;
  }
};

/// All kernels of the default stream one after the other from 0, one of another stream from `lead` on.
IssuePlan kernels_and_a_collective(std::size_t kernels, double lead) {
  IssuePlan plan;
  plan.streams = 2;
  for (std::size_t i = 0; i <= kernels; ++i) {
    Issue issue;
    issue.stream = i == kernels ? 1 : 0;
    issue.host = i == kernels ? lead : 0.0;
    plan.launches.push_back(issue);
    plan.order.push_back({StreamPoint::Kind::launch, issue.stream, static_cast<std::uint32_t>(i)});
  }
  return plan;
}

TEST(ContendedDurations, count_each_pairs_time_side_by_side_once) {
  Gpu gpu = round_gpu();
  gpu.launch.queue_depth = 1000;
  gpu.launch.start_latency = Seconds{0};
  // Of three kernels of one second, those that the collective of 1.2 s, from 0.5 s on, lies beside. The steps before
  // are long over: the host waits for everything.
  IssuePlan plan = kernels_and_a_collective(3, 0.5);
  plan.tail.wait_before = true;
  const std::vector<double> alone{1, 1, 1, 1.2};
  const EachPair contention;
  // What the two passes should find, from where kernels lay before.
  std::vector<double> expected = alone;
  for (int pass = 0; pass < 2; ++pass) {
    const std::vector<double> before = expected;
    expected = alone;
    const double start = 0.5, end = start + before[3];
    double at = 0.0;
    for (std::size_t k = 0; k < 3; at += before[k++]) {
      const double beside = std::min(end, at + before[k]) - std::max(start, at);
      if (beside <= 0.0) continue;
      if (at < start) expected[3] += 0.1 * (start - at);
      expected[k] += beside * (1.0 - 1.0 / contention.of_kernel(k, 3));
      expected[3] += beside * (1.0 - 1.0 / contention.of_collective(3, k));
    }
  }
  const std::vector<double> found = contended_durations(plan, alone, gpu, contention, 3);
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-9) << i;
}

TEST(ContendedDurations, a_collective_that_finds_the_gpu_idle_does_not_wait_for_room) {
  Gpu gpu = round_gpu();
  gpu.launch.start_latency = Seconds{0};
  IssuePlan plan = kernels_and_a_collective(1, 2.0);
  plan.tail.wait_before = true;
  const std::vector<double> alone{1, 1};
  EXPECT_EQ(contended_durations(plan, alone, gpu, EachPair{}, 3), alone);
}

}  // namespace
}  // namespace ridgeline

// The recurrence of one stream against queues written down step by step, and repeated launches against the same ones in
// a row.
#include "sim/timeline/recurrence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/timeline/issue_plan.h"

namespace ridgeline {
namespace {

constexpr double kLatency = 2e-6;

struct DrawnPlan {
  IssuePlan plan;
  std::vector<double> durations;
};

/// `busy`: how long kernels run against the host's work, 1 = as long.
DrawnPlan drawn_plan(std::mt19937_64& random, std::size_t launches, double busy, int waits_in_a_hundred, bool graphs) {
  std::uniform_real_distribution<double> cost(0.5e-6, 5e-6);
  std::uniform_int_distribution<int> percent(0, 99);
  DrawnPlan made;
  for (std::size_t i = 0; i < launches; ++i) {
    Issue issue;
    issue.host = cost(random);
    issue.gap = 0.2 * cost(random);
    issue.wait_before = percent(random) < waits_in_a_hundred;
    issue.host_before_wait = issue.wait_before ? cost(random) : 0.0;
    issue.queued = !graphs || percent(random) < 20;
    made.plan.launches.push_back(issue);
    made.durations.push_back(busy * cost(random));
  }
  made.plan.tail.host = cost(random);
  made.plan.tail.wait_before = waits_in_a_hundred > 0;
  made.plan.tail.host_before_wait = made.plan.tail.wait_before ? cost(random) : 0.0;
  return made;
}

/// The same launches in a row.
DrawnPlan in_a_row(const DrawnPlan& from) {
  const RepeatedLaunches& repeat = from.plan.repeat;
  DrawnPlan row;
  row.plan.tail = from.plan.tail;
  for (std::size_t i = 0; i < from.plan.launches.size(); ++i) {
    if (i == repeat.begin)
      for (std::int64_t run = 1; run < repeat.times; ++run)
        for (std::size_t k = repeat.begin; k < repeat.end; ++k) {
          row.plan.launches.push_back(from.plan.launches[k]);
          row.durations.push_back(from.durations[k]);
        }
    row.plan.launches.push_back(from.plan.launches[i]);
    row.durations.push_back(from.durations[i]);
  }
  return row;
}

/// Host and GPU by their definitions, over all steps so far.
class SlowQueues {
 public:
  explicit SlowQueues(std::size_t depth) : depth_(depth) {}
  double step(const DrawnPlan& drawn, std::vector<Recurrence::Span>& spans) {
    double starved = 0.0;
    for (std::size_t i = 0; i < drawn.durations.size(); ++i) {
      const Issue& issue = drawn.plan.launches[i];
      wait(issue);
      host += issue.host;
      if (issue.queued && queued_.size() >= depth_) host = std::max(host, queued_[queued_.size() - depth_]);
      const double free = gpu + issue.gap, start = std::max(free, host + kLatency);
      starved += start - free;
      gpu = start + drawn.durations[i];
      if (issue.queued) queued_.push_back(start);
      spans.push_back({host, start, gpu});
    }
    wait(drawn.plan.tail);
    host += drawn.plan.tail.host;
    return starved;
  }
  double host = 0.0, gpu = 0.0;

 private:
  void wait(const Issue& issue) {
    if (issue.wait_before) host = std::max(host + issue.host_before_wait, gpu + kLatency);
  }
  std::size_t depth_;
  std::vector<double> queued_;
};

struct Draw {
  double busy = 1;
  int waits = 0;
  bool graphs = false;
};
const std::vector<Draw> kDraws{{0.3, 0, false}, {1.0, 0, false}, {3.0, 0, false},
                               {1.0, 5, false}, {3.0, 5, false}, {1.0, 5, true}};

TEST(Recurrence, is_queues_written_down_step_by_step) {
  std::mt19937_64 random(20261128);
  for (const Draw& draw : kDraws) {
    for (const int depth : {1, 2, 7}) {
      const DrawnPlan drawn = drawn_plan(random, 60, draw.busy, draw.waits, draw.graphs);
      Recurrence recurrence(depth, kLatency);
      SlowQueues slow(static_cast<std::size_t>(depth));
      for (int step = 0; step < 3; ++step) {
        std::vector<Recurrence::Span> spans(60), slow_spans;
        const double starved = slow.step(drawn, slow_spans);
        EXPECT_NEAR(recurrence.step(drawn.plan, drawn.durations, spans).starved, starved, 1e-12);
        EXPECT_NEAR(recurrence.host(), slow.host, 1e-12);
        EXPECT_NEAR(recurrence.gpu(), slow.gpu, 1e-12);
        for (std::size_t i = 0; i < spans.size(); ++i) {
          EXPECT_NEAR(spans[i].issued, slow_spans[i].issued, 1e-12);
          EXPECT_NEAR(spans[i].start, slow_spans[i].start, 1e-12);
          EXPECT_NEAR(spans[i].end, slow_spans[i].end, 1e-12);
        }
      }
    }
  }
}

TEST(Recurrence, repeated_launches_are_the_same_ones_in_a_row) {
  std::mt19937_64 random(20261129);
  for (const Draw& draw : kDraws) {
    for (const int depth : {1, 3, 40}) {
      for (const std::int64_t times : {2, 3, 10, 200}) {
        DrawnPlan held = drawn_plan(random, 30, draw.busy, draw.waits, draw.graphs);
        held.plan.repeat = {8, 20, times};
        const DrawnPlan row = in_a_row(held);
        Recurrence once(depth, kLatency), all(depth, kLatency);
        const std::size_t rest = 12 * static_cast<std::size_t>(times - 1);
        for (int step = 0; step < 3; ++step) {
          std::vector<Recurrence::Span> spans(30), of_row(row.durations.size());
          const Recurrence::Step short_one = once.step(held.plan, held.durations, spans);
          const Recurrence::Step long_one = all.step(row.plan, row.durations, of_row);
          const double tolerance = 1e-9 * all.gpu();
          EXPECT_NEAR(once.host(), all.host(), tolerance);
          EXPECT_NEAR(once.gpu(), all.gpu(), tolerance);
          EXPECT_NEAR(short_one.starved, long_one.starved, tolerance);
          EXPECT_NEAR(short_one.repeated_gpu, of_row[8 + 12 * times - 1].end, tolerance);
          EXPECT_NEAR(short_one.repeated_host, of_row[8 + 12 * times - 1].issued, tolerance);
          for (std::size_t i = 0; i < spans.size(); ++i) {
            const Recurrence::Span& same = of_row[i < 20 ? i : i + rest];
            EXPECT_NEAR(spans[i].issued, same.issued, tolerance) << i;
            EXPECT_NEAR(spans[i].start, same.start, tolerance) << i;
            EXPECT_NEAR(spans[i].end, same.end, tolerance) << i;
          }
        }
      }
    }
  }
}

TEST(Recurrence, a_lead_that_runs_out_late_in_the_repetitions_is_seen) {
  // The host is a little slower than the GPU, which has a lead of long kernels to lose: it starves after some hundred
  // runs.
  DrawnPlan held;
  for (int i = 0; i < 4; ++i) {
    held.plan.launches.push_back({.host = i < 2 ? 1e-6 : 10e-6, .gap = 0});
    held.durations.push_back(i < 2 ? 1e-3 : 9.9e-6);
  }
  held.plan.repeat = {2, 4, 1000};
  const DrawnPlan row = in_a_row(held);
  for (const int depth : {4, 64, 5000}) {
    Recurrence once(depth, kLatency), all(depth, kLatency);
    std::vector<Recurrence::Span> spans(4), of_row(row.durations.size());
    for (int step = 0; step < 2; ++step) {
      EXPECT_NEAR(once.step(held.plan, held.durations, spans).starved,
                  all.step(row.plan, row.durations, of_row).starved, 1e-9);
      EXPECT_NEAR(once.gpu(), all.gpu(), 1e-9);
      EXPECT_NEAR(once.host(), all.host(), 1e-9);
    }
  }
}

}  // namespace
}  // namespace ridgeline

// One rank's play against a recurrence written out launch by launch, and what the ranks of a pipeline wait for: the
// parts of each rank's step add up to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/timeline/pipeline_play.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using parallel::PipelineShape;
using parallel::RankActions;
using parallel::StageAction;
using testing_support::changing_seed;
using testing_support::Draws;
using PointKind = StretchPoint::Kind;

constexpr double kStartLatency = 2e-6;
constexpr std::size_t kStreams = 3, kEventCount = 2;

/// A kernel, or an event that a stream records or waits for.
StretchPoint random_point(Draws& draws, std::uint32_t launch) {
  StretchPoint point;
  const double kind = draws.share();
  point.stream = static_cast<std::uint8_t>(draws.share() < 0.6 ? 0 : 1 + draws.index(kStreams - 1));
  if (kind < 0.25) {
    point.kind = kind < 0.12 ? PointKind::record_event : PointKind::wait_event;
    point.index = static_cast<std::uint32_t>(draws.index(kEventCount));
    return point;
  }
  point.index = launch;
  point.launches = 1;
  point.host = point.first = draws.between(1e-7, 1e-5);
  point.gap = draws.between(1e-7, 1e-6);
  point.busy = draws.between(1e-7, 3e-5);
  point.late = point.host + kStartLatency + point.busy;
  point.host_waits = draws.share() < 0.1;
  point.wait_for = draws.share() < 0.5 ? -1 : static_cast<std::int64_t>(draws.index(kEventCount));
  point.before_wait = draws.between(1e-7, 1e-5);
  return point;
}

/// The same, a launch after another.
struct ByHand {
  struct Launch {
    double start = 0.0, end = 0.0;
  };
  double host = 0.0, starved = 0.0, waited = 0.0;
  std::vector<double> ends = std::vector<double>(kStreams), ready = std::vector<double>(kStreams),
                      events = std::vector<double>(kEventCount);
  std::vector<double> starts;  ///< of the default stream's launches, of all steps
  [[nodiscard]] double done(std::size_t stream) const { return std::max(ends[stream], ready[stream]); }

  Launch play(const StretchPoint& point, std::size_t depth) {
    const std::size_t s = point.stream;
    if (point.kind == PointKind::record_event) {
      events[point.index] = done(s);
      return {};
    }
    if (point.kind == PointKind::wait_event) {
      ready[s] = std::max(ready[s], events[point.index]);
      return {};
    }
    if (point.host_waits) {
      double until = point.wait_for >= 0 ? events[static_cast<std::size_t>(point.wait_for)] : 0.0;
      for (std::size_t i = 0; point.wait_for < 0 && i < kStreams; ++i) until = std::max(until, done(i));
      host = std::max(host + point.before_wait, until + kStartLatency);
    }
    host += point.host;
    const double issued = host + kStartLatency, free = std::max(ends[s] + point.gap, ready[s]);
    const double start = std::max(issued, free);
    if (s == 0) {
      starved += std::max(0.0, issued - free);
      waited += std::max(0.0, ready[s] - std::max(ends[s] + point.gap, issued));
      starts.push_back(start);
      if (starts.size() >= depth) host = std::max(host, starts[starts.size() - depth]);
    }
    ends[s] = start + point.busy;
    return {start, ends[s]};
  }
};

TEST(PipelinePlayByHand, LaunchesOfOneRankAreThoseOfTheRecurrence) {
  const std::uint64_t seed = changing_seed();
  SCOPED_TRACE(::testing::Message() << "RIDGELINE_TEST_SEED=" << seed);
  Draws draws(seed);
  for (int turn = 0; turn < 300; ++turn) {
    const std::size_t depth = 1 + draws.index(7), count = 1 + draws.index(30);
    StageScript script;
    script.actions.resize(3);
    RankActions actions(1);
    actions[0].kind = StageAction::Kind::forward;
    std::uint32_t launches = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const StretchPoint point = random_point(draws, launches);
      launches += point.launches;
      script.actions[draws.index(8) == 0 ? 0 : 1].push_back(point);
    }
    script.tail.wait_before = draws.index(2) == 0;
    script.tail.wait_for = -1;
    script.tail.host_before_wait = draws.between(1e-7, 1e-5);
    script.tail.host = draws.between(1e-7, 1e-5);
    PlayedRank rank{&script, &actions, {0}, kStreams, kEventCount};
    PipelinePlay play({rank}, static_cast<int>(depth), kStartLatency);
    ByHand hand;
    for (int step = 0; step < 4; ++step) {
      const double begin = hand.done(0), host_begin = hand.host;
      hand.starved = hand.waited = 0.0;
      PipelinePlay::Spans spans(launches);
      const auto played = play.step(0, &script, &spans).front();
      for (const auto& points : script.actions)
        for (const StretchPoint& point : points) {
          const ByHand::Launch launch = hand.play(point, depth);
          if (point.kind != PointKind::kernels) continue;
          ASSERT_NEAR(spans[point.index].start, launch.start, 1e-12) << step << ' ' << point.index;
          ASSERT_NEAR(spans[point.index].end, launch.end, 1e-12);
        }
      double all = 0.0;
      for (std::size_t s = 0; s < kStreams; ++s) all = std::max(all, hand.done(s));
      if (script.tail.wait_before) {
        // What the default stream still waits for then counts too.
        hand.waited += std::max(0.0, hand.ready[0] - std::max(hand.ends[0], hand.host + script.tail.host_before_wait));
        hand.host = std::max(hand.host + script.tail.host_before_wait, all + kStartLatency);
      }
      hand.host += script.tail.host;
      EXPECT_NEAR(played.begin, begin, 1e-12);
      EXPECT_NEAR(played.host_begin, host_begin, 1e-12);
      EXPECT_NEAR(played.end, hand.done(0), 1e-12);
      EXPECT_NEAR(played.host, hand.host, 1e-12);
      EXPECT_NEAR(played.starved, hand.starved, 1e-12);
      EXPECT_EQ(played.transfers, 0.0) << "nothing is exchanged";
    }
  }
}

/// Ranks of a schedule, whose hosts cost nothing, with a kernel an action.
struct Ranks {
  std::vector<RankActions> actions;
  std::vector<StageScript> scripts;
  std::vector<double> busy;
  explicit Ranks(const PipelineShape& shape) : actions(parallel::make_schedule(shape)) {}

  void draw(Draws& draws, double exchange) {
    scripts.assign(actions.size(), {});
    busy.assign(actions.size(), 0.0);
    for (std::size_t rank = 0; rank < actions.size(); ++rank) {
      // The host waits for the end of the step, so that what is still on its way then counts in it.
      scripts[rank].tail.wait_before = true;
      scripts[rank].tail.wait_for = -1;
      auto& points = scripts[rank].actions;
      points.resize(actions[rank].size() + 2);
      for (std::size_t i = 0; i < actions[rank].size(); ++i) {
        const StageAction& action = actions[rank][i];
        StretchPoint point;
        point.launches = 1;
        if (action.kind == StageAction::Kind::exchange) {
          point.kind = PointKind::exchange;
          point.busy = exchange;
        } else if (action.computes()) {
          point.busy = point.late = draws.between(0.1, 2.0);
          busy[rank] += point.busy;
        } else {
          continue;
        }
        points[i + 1] = {point};
      }
    }
  }
  [[nodiscard]] std::vector<PlayedRank> played() const {
    std::vector<PlayedRank> ranks;
    for (std::size_t rank = 0; rank < actions.size(); ++rank) {
      PlayedRank& one = ranks.emplace_back();
      one.script = &scripts[rank];
      one.actions = &actions[rank];
      for (std::uint32_t i = 0; i < actions[rank].size(); ++i) one.positions.push_back(i);
    }
    return ranks;
  }
};

std::vector<Ranks> all_schedules() {
  std::vector<Ranks> all;
  for (const auto schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward, PipelineSchedule::interleaved,
        PipelineSchedule::zb1p, PipelineSchedule::zbv, PipelineSchedule::interleaved_zero_bubble})
    for (const std::int32_t ranks : {2, 4}) {
      const bool several = schedule == PipelineSchedule::zbv || schedule == PipelineSchedule::interleaved ||
                           schedule == PipelineSchedule::interleaved_zero_bubble;
      all.emplace_back(PipelineShape{schedule, ranks, several ? 2 : 1, 4 * ranks});
    }
  return all;
}

TEST(PipelinePlayByHand, KernelsTransfersAndTheBubbleAreTheStep) {
  const std::uint64_t seed = changing_seed();
  SCOPED_TRACE(::testing::Message() << "RIDGELINE_TEST_SEED=" << seed);
  Draws draws(seed);
  for (Ranks& ranks : all_schedules())
    for (const double exchange : {0.0, 0.3}) {
      ranks.draw(draws, exchange);
      PipelinePlay play(ranks.played(), 1 << 20, 0.0);
      for (int step = 0; step < 2; ++step) {
        const auto steps = play.step();
        for (std::size_t rank = 0; rank < steps.size(); ++rank) {
          const auto& one = steps[rank];
          const double parts = ranks.busy[rank] + one.transfers + one.bubble + one.starved;
          EXPECT_NEAR(one.end - one.begin, parts, 1e-9);
          EXPECT_NEAR(one.starved, 0.0, 1e-9) << "a host that costs nothing is never waited for";
          if (exchange == 0.0) {
            EXPECT_EQ(one.transfers, 0.0);
          }
          EXPECT_GE(one.bubble, 0.0);
        }
        // Somebody waits for what is on its way.
        if (exchange > 0.0) {
          EXPECT_TRUE(std::ranges::any_of(steps, [](const auto& one) { return one.transfers > 0.0; }));
        }
      }
    }
}

/// Transfers that take as long as their kernels say, and as long as a table says.
TEST(PipelinePlayByHand, TransfersTakeAsLongAsTheTableSays) {
  Draws draws(changing_seed());
  for (Ranks& ranks : all_schedules()) {
    ranks.draw(draws, 0.3);
    const std::size_t n = ranks.actions.size();
    PipelinePlay by_kernels(ranks.played(), 1 << 20, 0.0),
        by_table(ranks.played(), 1 << 20, 0.0, std::vector(n * n, 0.3)),
        longer(ranks.played(), 1 << 20, 0.0, std::vector(n * n, 0.9));
    const auto a = by_kernels.step(), b = by_table.step(), c = longer.step();
    for (std::size_t rank = 0; rank < n; ++rank) {
      EXPECT_NEAR(a[rank].end, b[rank].end, 1e-9);
      EXPECT_GE(c[rank].end, b[rank].end - 1e-9);
    }
  }
}

/// Passes are shown in order, as long as their kernels.
TEST(PipelinePlayByHand, PassesAreThoseOfTheActions) {
  Draws draws(changing_seed());
  for (Ranks& ranks : all_schedules()) {
    ranks.draw(draws, 0.1);
    PipelinePlay play(ranks.played(), 1 << 20, 0.0);
    std::size_t most = 0;
    for (const RankActions& actions : ranks.actions) most = std::max(most, actions.size());
    PipelinePlay::Spans spans(most + 2);
    play.step(0, &ranks.scripts[0], &spans);
    for (std::size_t rank = 0; rank < ranks.actions.size(); ++rank) {
      std::vector<std::uint32_t> expected, found;
      for (std::uint32_t i = 0; i < ranks.actions[rank].size(); ++i)
        if (ranks.actions[rank][i].computes() && !ranks.scripts[rank].actions[i + 1].empty()) expected.push_back(i);
      double before = 0.0;
      for (const PipelinePlay::Pass& pass : play.passes(rank)) {
        found.push_back(pass.action);
        EXPECT_NEAR(pass.end - pass.start, ranks.scripts[rank].actions[pass.action + 1].front().busy, 1e-9);
        EXPECT_GE(pass.start, before - 1e-9);
        before = pass.end;
      }
      EXPECT_EQ(found, expected);
    }
  }
}

}  // namespace
}  // namespace ridgeline

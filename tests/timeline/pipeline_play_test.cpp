// The play of a pipeline against closed forms, and against a replay that relaxes all times until none moves.
#include "sim/timeline/pipeline_play.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using parallel::PipelineShape;
using parallel::RankActions;
using parallel::StageAction;
using Kind = StageAction::Kind;

/// Seconds of each action of each rank; those of an exchange are its transfers'.
using Times = std::vector<std::vector<double>>;

StretchPoint kernels(double seconds, StretchPoint::Kind kind = StretchPoint::Kind::kernels) {
  StretchPoint point;
  point.kind = kind;
  point.launches = 1;
  point.busy = point.late = seconds;
  return point;
}

/// A script of one kernel an action, whose host costs nothing.
std::vector<StageScript> scripts(const std::vector<RankActions>& actions, const Times& times) {
  std::vector<StageScript> result;
  for (std::size_t rank = 0; rank < actions.size(); ++rank) {
    StageScript& script = result.emplace_back();
    script.actions.resize(actions[rank].size() + 2);
    for (std::size_t i = 0; i < actions[rank].size(); ++i) {
      const StageAction& action = actions[rank][i];
      if (action.kind == Kind::exchange)
        script.actions[i + 1] = {kernels(times[rank][i], StretchPoint::Kind::exchange)};
      else if (action.computes()) script.actions[i + 1] = {kernels(times[rank][i])};
    }
  }
  return result;
}

std::vector<PlayedRank> played(const std::vector<RankActions>& actions, const std::vector<StageScript>& scripts) {
  std::vector<PlayedRank> ranks;
  for (std::size_t rank = 0; rank < actions.size(); ++rank) {
    PlayedRank& one = ranks.emplace_back();
    one.script = &scripts[rank];
    one.actions = &actions[rank];
    for (std::uint32_t i = 0; i < actions[rank].size(); ++i) one.positions.push_back(i);
  }
  return ranks;
}

double play(const std::vector<RankActions>& actions, const Times& times, int steps = 1) {
  const std::vector<StageScript> all = scripts(actions, times);
  PipelinePlay play(played(actions, all), 1 << 20, 0.0);
  double longest = 0.0;
  for (int i = 0; i < steps; ++i) {
    longest = 0.0;
    for (const auto& rank : play.step()) longest = std::max(longest, rank.end - (steps > 1 ? rank.begin : 0.0));
  }
  return longest;
}

Times equal_times(const std::vector<RankActions>& actions, double forward, double backward, double exchange) {
  Times times;
  for (const RankActions& rank : actions) {
    times.emplace_back();
    for (const StageAction& action : rank)
      times.back().push_back(action.kind == Kind::forward    ? forward
                             : action.kind == Kind::backward ? backward
                             : action.kind == Kind::exchange ? exchange
                                                             : 0.5 * backward);
  }
  return times;
}

/// Times of all actions, raised until they hold: nothing starts before what it waits for has ended.
double relaxed(const std::vector<RankActions>& actions, const Times& times) {
  struct Batch {
    double start = 0.0, end = 0.0;
  };
  std::vector<std::vector<Batch>> batches(actions.size());
  std::map<std::uint64_t, std::vector<std::pair<std::size_t, std::size_t>>>
      sides;  // rank and position of each exchange
  std::vector<std::vector<std::size_t>> position(actions.size());
  for (std::size_t rank = 0; rank < actions.size(); ++rank)
    for (std::size_t i = 0; i < actions[rank].size(); ++i) {
      if (actions[rank][i].kind != Kind::exchange) continue;
      batches[rank].emplace_back();
      position[rank].push_back(i);
      for (const auto& transfer : actions[rank][i].transfers)
        sides[transfer.key()].emplace_back(rank, position[rank].size() - 1);
    }
  double last = 0.0;
  for (bool moved = true; moved;) {
    moved = false;
    last = 0.0;
    for (std::size_t rank = 0; rank < actions.size(); ++rank) {
      double now = 0.0, sent = 0.0;
      for (std::size_t i = 0; i < actions[rank].size(); ++i) {
        const StageAction& action = actions[rank][i];
        const auto batch = static_cast<std::size_t>(action.batch);
        if (action.computes()) now += times[rank][i];
        if (action.kind == Kind::wait) now = std::max(now, batches[rank][batch].end);
        if (action.kind != Kind::exchange) continue;
        Batch& one = batches[rank][batch];
        const double start = std::max(now, sent);
        double end = start;
        for (const auto& transfer : action.transfers)
          for (const auto& [other, number] : sides[transfer.key()]) {
            const double theirs = other == rank ? start : batches[other][number].start;
            const double seconds = std::max(times[rank][i], times[other][position[other][number]]);
            end = std::max(end, std::max(start, theirs) + seconds);
          }
        moved |= start > one.start + 1e-12 || end > one.end + 1e-12;
        one = {std::max(one.start, start), std::max(one.end, end)};
        sent = one.end;
      }
      last = std::max(last, now);
    }
  }
  return last;
}

TEST(PipelinePlay, OfEqualStagesTakesMicroBatchesAndStagesLessOneTimesBothPasses) {
  for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward})
    for (const std::int32_t ranks : {2, 4, 8})
      for (const std::int32_t m : {8, 16, 64}) {
        const auto actions = parallel::make_schedule(PipelineShape{schedule, ranks, 1, m});
        const double both = 3.0, step = (m + ranks - 1) * both;
        EXPECT_NEAR(play(actions, equal_times(actions, 1.0, 2.0, 0.0)), step, 1e-9 * step);
        // Step after step the first rank is never ready earlier.
        EXPECT_NEAR(play(actions, equal_times(actions, 1.0, 2.0, 0.0), 4), step, 1e-9 * step);
      }
}

TEST(PipelinePlay, AgreesWithARelaxation) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0.1, 2.0);
  for (const auto schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward, PipelineSchedule::interleaved,
        PipelineSchedule::zb1p, PipelineSchedule::zbv, PipelineSchedule::interleaved_zero_bubble})
    for (const std::int32_t ranks : {2, 3, 4}) {
      const std::int32_t v = schedule == PipelineSchedule::zbv || schedule == PipelineSchedule::interleaved ||
                                     schedule == PipelineSchedule::interleaved_zero_bubble
                                 ? 2
                                 : 1;
      const auto actions = parallel::make_schedule(PipelineShape{schedule, ranks, v, 4 * ranks});
      Times times;
      for (const RankActions& rank : actions) {
        times.emplace_back();
        for (std::size_t i = 0; i < rank.size(); ++i) times.back().push_back(seconds(random));
      }
      const double expected = relaxed(actions, times);
      EXPECT_NEAR(play(actions, times), expected, 1e-9 * expected) << static_cast<int>(schedule) << " of " << ranks;
    }
}

// Four ranks and 16 micro-batches: the bubble of interleaved stages would be that of 1F1B divided by their number if
// exchanges ran beside each other. On one stream a receive whose sender is not ready holds up what stands behind it.
// The figures are those of an independent relaxation of the same lists.
TEST(PipelinePlay, OneStreamOfExchangesTakesAwayWhatInterleavingGains) {
  const auto bubble = [](PipelineSchedule schedule, std::int32_t v) {
    const auto actions = parallel::make_schedule(PipelineShape{schedule, 4, v, 16});
    return play(actions, equal_times(actions, 1.0 / v, 2.0 / v, 0.0)) - 16 * 3.0;
  };
  EXPECT_NEAR(bubble(PipelineSchedule::one_forward_one_backward, 1), 9.0, 1e-9);
  EXPECT_NEAR(bubble(PipelineSchedule::interleaved, 2), 10.0, 1e-9);
  EXPECT_NEAR(bubble(PipelineSchedule::interleaved, 4), 10.0, 1e-9);
  EXPECT_LT(bubble(PipelineSchedule::zb1p, 1), 9.0);
}

TEST(PipelinePlay, MegatronsStagesTakeAsLong) {
  for (const std::int32_t ranks : {2, 4, 8})
    for (const std::int32_t m : {2, 8, 64}) {
      const auto actions = parallel::make_schedule(
          PipelineShape{PipelineSchedule::one_forward_one_backward, ranks, 1, m, Framework::megatron});
      const double step = (m + ranks - 1) * 3.0;
      EXPECT_NEAR(play(actions, equal_times(actions, 1.0, 2.0, 0.0)), step, 1e-9 * step);
      EXPECT_GT(play(actions, equal_times(actions, 1.0, 2.0, 0.1)), step);
    }
  // Of two stages a rank the bubble is half as long.
  const auto twice =
      parallel::make_schedule(PipelineShape{PipelineSchedule::interleaved, 4, 2, 16, Framework::megatron});
  EXPECT_NEAR(play(twice, equal_times(twice, 0.5, 1.0, 0.0)), 16 * 3.0 + 3 * 1.5, 1e-9);
}

TEST(PipelinePlay, AMeetingStartsWhenTheLastRankHasCome) {
  const auto actions =
      parallel::make_schedule(PipelineShape{PipelineSchedule::one_forward_one_backward, 3, 1, 4, Framework::megatron});
  std::vector<StageScript> all = scripts(actions, equal_times(actions, 1.0, 2.0, 0.0));
  for (std::size_t rank = 0; rank < 3; ++rank) {
    StretchPoint ends = kernels(0.25, StretchPoint::Kind::meeting), model = kernels(0.5, StretchPoint::Kind::meeting);
    ends.group = GroupKind::embedding;
    model.group = GroupKind::model;
    if (rank != 1) all[rank].actions.back().push_back(ends);
    all[rank].actions.back().push_back(kernels(rank == 2 ? 4.0 : 1.0));
    all[rank].actions.back().push_back(model);
  }
  PipelinePlay play(played(actions, all), 1 << 20, 0.0);
  // The first rank is the last to end its passes: tables are added up then, the last rank works for four seconds more.
  const double step = (4 + 3 - 1) * 3.0 + 0.25 + 4.0 + 0.5;
  for (const auto& rank : play.step()) EXPECT_NEAR(rank.end, step, 1e-9);
}

TEST(PipelinePlay, TheBubbleVanishesOverManyMicroBatches) {
  double last = 1.0;
  for (const std::int32_t m : {8, 32, 128, 512}) {
    const auto actions = parallel::make_schedule(PipelineShape{PipelineSchedule::one_forward_one_backward, 4, 1, m});
    const double step = play(actions, equal_times(actions, 1.0, 2.0, 0.0));
    const double bubble = 1.0 - m * 3.0 / step;
    EXPECT_LT(bubble, last);
    last = bubble;
  }
  EXPECT_LT(last, 0.01);
}

TEST(PipelinePlay, NamesBothSidesOfADeadlock) {
  // Two ranks that each want to receive first.
  std::vector<RankActions> actions(2);
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    actions[static_cast<std::size_t>(rank)] = {
        {Kind::exchange, rank, 0, 0, {{false, rank == 0, 1 - rank, 0, 1 - rank}}},
        {Kind::wait, rank, 0, 0, {}},
        {Kind::exchange, rank, 0, 1, {{true, rank == 1, rank, 0, 1 - rank}}},
    };
  }
  try {
    play(actions, {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(),
                ::testing::AllOf(::testing::HasSubstr("rank 0 is at wait"), ::testing::HasSubstr("RECV_B"),
                                 ::testing::HasSubstr("rank 1 is at wait"), ::testing::HasSubstr("RECV_F")));
  }
}

}  // namespace
}  // namespace ridgeline

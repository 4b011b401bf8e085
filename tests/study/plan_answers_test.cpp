// What the search of a plan answers, of ways whose times and memory are made up: the best, those that nothing is better
// than, the nearest where nothing fits. A slow search that looks at everything finds the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "sim/study/plan/plan_search.h"
#include "tests/support/draws.h"
#include "tests/support/made_ways.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing_support::found_among;
using testing_support::kMadeCapacity;
using testing_support::MadeRanks;
using testing_support::MadeWay;
using testing_support::point_of_way;
using testing_support::question_of;

std::vector<std::uint64_t> places(std::uint64_t begin, std::uint64_t end) {
  std::vector<std::uint64_t> result;
  for (std::uint64_t i = begin; i < end; ++i) result.push_back(i);
  return result;
}

// Equal times are ordered by memory, equal memory by the order of the candidates.
TEST(PlanAnswers, TheBestAreOrderedByTimeThenMemoryThenPlace) {
  const std::vector<MadeWay> ways{
      {.time = 3.0, .memory = 50}, {.time = 2.0, .memory = 90}, {.time = 2.0, .memory = 70},
      {.time = 2.0, .memory = 70}, {.time = 1.0, .memory = 95}, {.time = 3.1, .memory = 50},
      {.time = 1.6, .memory = 10}, {.time = 1.5, .memory = 94}, {.time = 1.5, .memory = 93}};
  const PlanSearch found = found_among(ways);
  EXPECT_THAT(found.best, ElementsAre(4, 8, 7, 6, 2, 3, 1, 0, 5));
  EXPECT_THAT(found.front, ElementsAre(4, 8)) << "half as slow again as the fastest is 1.5 s";
}

// A way on fewer GPUs is worth something where it is slower; one on more is not where it is as slow.
TEST(PlanAnswers, TheFrontIsOfTimeMemoryAndGpus) {
  const std::vector<MadeWay> ways{{.time = 1.0, .memory = 95, .gpus = 8},  {.time = 1.2, .memory = 95, .gpus = 8},
                                  {.time = 1.4, .memory = 80, .gpus = 8},  {.time = 2.0, .memory = 95, .gpus = 4},
                                  {.time = 2.1, .memory = 96, .gpus = 4},  {.time = 2.9, .memory = 94, .gpus = 4},
                                  {.time = 1.4, .memory = 80, .gpus = 16}, {.time = 3.1, .memory = 5, .gpus = 4}};
  EXPECT_THAT(found_among(ways).front, ElementsAre(0, 2, 3, 5));
}

// Where nothing has to stay equal, strategies are names for one thing: of ways that are predicted alike and differ by
// their strategy alone, one is shown.
TEST(PlanAnswers, ShowsOneOfThoseThatDifferByNameAlone) {
  const auto shown = [](const std::function<void(PlanCandidate&, SweepPoint&)>& change) {
    PlanQuestion question = question_of({{}, {}});
    question.sweep.title = "made";
    question.candidates[1].micro_batch = question.candidates[0].micro_batch;
    std::vector<SweepPoint> known{point_of_way(0, {.time = 2.0, .memory = 7}),
                                  point_of_way(1, {.time = 2.0, .memory = 7})};
    change(question.candidates[1], known[1]);
    PlanSearchOptions options;
    options.known = known;
    Session session;
    Ranks alone;
    return search_plan(question, session, alone, options).best.size();
  };
  EXPECT_EQ(shown([](PlanCandidate& c, SweepPoint&) { c.strategy = "zero1"; }), 1u);
  EXPECT_EQ(shown([](PlanCandidate& c, SweepPoint&) { c.strategy = "zero1", c.micro_batch = 9; }), 2u);
  EXPECT_EQ(shown([](PlanCandidate& c, SweepPoint&) { c.data = 2; }), 2u);
  EXPECT_EQ(shown([](PlanCandidate&, SweepPoint& p) { p.metrics[static_cast<std::size_t>(Metric::memory)] = 8; }), 2u);
  EXPECT_EQ(shown([](PlanCandidate&, SweepPoint& p) { p.metrics[static_cast<std::size_t>(Metric::step_time)] = 3; }),
            2u);
}

TEST(PlanAnswers, ShowsTen) {
  std::vector<MadeWay> ways;
  for (int i = 0; i < 12; ++i) ways.push_back({.time = 1.0 + i, .memory = 7});
  EXPECT_THAT(found_among(ways).best, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

// Nothing fits: the one that needs least, the first of equal ones, whoever was refused or stands before it.
TEST(PlanAnswers, TheNearestNeedsLeastOfAll) {
  const PlanSearch found = found_among({{.memory = 0, .refused = "no"},
                                        {.memory = 1300, .fits = false},
                                        {.memory = 1200, .fits = false},
                                        {.memory = 1200, .fits = false},
                                        {.memory = 1400, .fits = false},
                                        {.error = "cannot"}});
  EXPECT_THAT(found.best, IsEmpty());
  EXPECT_THAT(found.front, IsEmpty());
  ASSERT_TRUE(found.nearest);
  EXPECT_EQ(*found.nearest, 2u);
  EXPECT_FALSE(found_among({{.refused = "no"}}).nearest);
}

// Those that are too large by their bounds are tried too, sixteen at once from the smallest bound, as long as the bound
// is below what the nearest needs.
TEST(PlanAnswers, TheNearestMayBeOneThatIsTooLarge) {
  std::vector<MadeWay> ways{{.least_memory = 1, .memory = 1200, .fits = false}};
  for (int i = 0; i < 40; ++i) ways.push_back({.least_memory = 1200 - i, .memory = 1300 + i, .fits = false});
  ways[20].memory = 1190;  // its bound: 1181
  MadeRanks ranks(ways);
  std::vector<std::pair<std::size_t, std::size_t>> progress;
  PlanSearchOptions options;
  options.on_progress = [&](std::size_t predicted, std::size_t open) { progress.emplace_back(predicted, open); };
  const PlanSearch found = found_among(ways, ranks, options);
  // Bounds 1161 to 1176 are those of 40 down to 25; 1177 to 1192 those of 24 to 9; the next is 1193, above 1190.
  EXPECT_THAT(ranks.rounds, ElementsAre(places(0, 1), places(25, 41), places(9, 25)));
  ASSERT_TRUE(found.nearest);
  EXPECT_EQ(*found.nearest, 20u);
  EXPECT_EQ(found.entries[8].fate, PlanFate::too_large);
  EXPECT_THAT(progress, ElementsAre(Pair(1, 0), Pair(17, 0), Pair(33, 0)));
  ways[20].memory = 1194;
  MadeRanks further(ways);
  EXPECT_EQ(*found_among(ways, further).nearest, 20u);
  EXPECT_EQ(further.rounds.size(), 4u);
  ways[20].memory = 1193;
  MadeRanks enough(ways);
  (void)found_among(ways, enough);
  EXPECT_EQ(enough.rounds.size(), 3u) << "what needs as much is no nearer";
}

// Two GPUs take 10 s at best and little memory, until a way is found that takes 6 s: then the former is not worth it,
// and four GPUs in 11.5 s with as little are.
TEST(PlanAnswers, WhatFallsBehindHidesNothing) {
  std::vector<MadeWay> ways;
  for (int i = 0; i < 14; ++i) ways.push_back({.least = 1.0, .time = 8.0 + 0.1 * i, .memory = 500});
  ways.push_back({.least = 1.0, .time = 10.0, .memory = 50, .gpus = 2});
  ways.push_back({.least = 1.0, .time = 30.0, .memory = 600, .gpus = 2});
  ways.push_back({.least = 5.0, .least_memory = 650, .time = 6.0, .memory = 700, .gpus = 2});
  ways.push_back({.least = 11.0, .least_memory = 60, .time = 11.5, .memory = 70});
  const PlanSearch found = found_among(ways);
  EXPECT_THAT(found.front, ElementsAre(16, 0, 17));
  PlanSearchOptions everything;
  everything.exhaustive = true;
  EXPECT_EQ(found_among(ways, everything).front, found.front);
}

/// Everything predicted, everything compared.
struct SlowAnswer {
  std::vector<std::size_t> best, front;
  std::int64_t nearest_memory = 0;  ///< 0: some fit
};
SlowAnswer slow_answer(const std::vector<MadeWay>& ways) {
  std::vector<std::size_t> fitting;
  SlowAnswer answer;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (!ways[i].refused.empty() || !ways[i].error.empty()) continue;
    if (ways[i].fits) fitting.push_back(i);
    else if (answer.nearest_memory == 0 || ways[i].memory < answer.nearest_memory)
      answer.nearest_memory = ways[i].memory;
  }
  if (!fitting.empty()) answer.nearest_memory = 0;
  const auto key = [&](std::size_t i) { return std::tuple(ways[i].time, ways[i].memory, i); };
  std::sort(fitting.begin(), fitting.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  const auto worth_it = [&](std::size_t i) {
    return std::none_of(fitting.begin(), fitting.end(), [&](std::size_t other) {
      return ways[other].gpus == ways[i].gpus && ways[i].time > 1.5 * ways[other].time;
    });
  };
  for (const std::size_t i : fitting) {
    if (answer.best.size() < 10) answer.best.push_back(i);
    const bool beaten = std::any_of(fitting.begin(), fitting.end(), [&](std::size_t other) {
      return worth_it(other) && key(other) < key(i) && ways[other].memory <= ways[i].memory &&
             ways[other].gpus <= ways[i].gpus;
    });
    if (worth_it(i) && !beaten) answer.front.push_back(i);
  }
  return answer;
}

TEST(PlanAnswers, FindsWhatLookingAtEverythingFinds) {
  const std::uint64_t seed = testing_support::changing_seed();
  SCOPED_TRACE(seed);
  testing_support::Draws draws(seed);
  std::size_t saved = 0;
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<MadeWay> ways(20 + draws.index(100));
    const double fitting = turn % 10 == 0 ? 0.0 : 0.5 + 0.5 * draws.share();
    for (MadeWay& way : ways) {
      way.time = 1.0 + static_cast<double>(draws.index(60));
      way.least = way.time * (draws.share() < 0.3 ? 1.0 : draws.between(0.2, 1.0));
      way.memory = 10 * static_cast<std::int64_t>(1 + draws.index(99));
      way.fits = draws.share() < fitting;
      if (!way.fits) way.memory += kMadeCapacity;
      way.least_memory = static_cast<std::int64_t>(static_cast<double>(way.memory) * draws.between(0.3, 1.0));
      if (draws.share() < 0.05) way.refused = "no";
      if (draws.share() < 0.05) way.error = "no";
    }
    const SlowAnswer slow = slow_answer(ways);
    MadeRanks ranks(ways);
    const PlanSearch found = found_among(ways, ranks);
    ASSERT_EQ(found.best, slow.best);
    ASSERT_EQ(found.front, slow.front);
    ASSERT_EQ(found.nearest ? found.entries[*found.nearest].memory : 0, slow.nearest_memory);
    saved += ways.size() - found.predictions;
  }
  EXPECT_GT(saved, 1000u);
}

}  // namespace
}  // namespace ridgeline

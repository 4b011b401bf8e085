// The search among the candidates of a plan, whose times and memory are made up: what is predicted in which round, and
// what is dropped.
#include "sim/study/plan/plan_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

std::vector<std::uint64_t> from_to(std::uint64_t begin, std::uint64_t end) {
  std::vector<std::uint64_t> result;
  for (std::uint64_t i = begin; i < end; ++i) result.push_back(i);
  return result;
}

// Sixteen a round, and a quarter of what was predicted once that is more: 80 / 4, 100 / 4, 125 / 4, 156 / 4.
TEST(PlanSearch, RoundsGrowWithWhatIsKnown) {
  std::vector<MadeWay> ways;
  for (int i = 0; i < 200; ++i) ways.push_back({.least = 1.0 + i, .time = 500.0 + i, .memory = 10 + i});
  MadeRanks ranks(ways);
  std::vector<std::pair<std::size_t, std::size_t>> progress;
  std::size_t told = 0;
  PlanSearchOptions options;
  options.exhaustive = true;
  options.on_progress = [&](std::size_t predicted, std::size_t open) { progress.emplace_back(predicted, open); };
  options.on_points = [&](std::span<const SweepPoint> points) { told += points.size(); };
  const PlanSearch found = found_among(ways, ranks, options);
  EXPECT_THAT(ranks.sizes(), ElementsAre(16, 16, 16, 16, 16, 20, 25, 31, 39, 5));
  EXPECT_EQ(ranks.rounds[0], from_to(0, 16));
  EXPECT_EQ(ranks.rounds[9], from_to(195, 200));
  EXPECT_THAT(progress, ElementsAre(Pair(16, 184), Pair(32, 168), Pair(48, 152), Pair(64, 136), Pair(80, 120),
                                    Pair(100, 100), Pair(125, 75), Pair(156, 44), Pair(195, 5), Pair(200, 0)));
  EXPECT_EQ(told, 200u);
  EXPECT_EQ(found.predictions, 200u);
}

// Candidates of the smallest least time come first, equal ones in their order; those of a round ascend.
TEST(PlanSearch, TheFastestByTheirBoundsAreTriedFirst) {
  std::vector<MadeWay> ways;
  for (int i = 0; i < 18; ++i) ways.push_back({.least = i == 7 || i == 3 ? 9.0 : 5.0, .time = 10.0 + i, .memory = 9});
  MadeRanks ranks(ways);
  (void)found_among(ways, ranks);
  EXPECT_THAT(ranks.rounds,
              ElementsAre(std::vector<std::uint64_t>{0, 1, 2, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17},
                          std::vector<std::uint64_t>{3, 7}));
}

// What becomes of each: the reader's no stands, more than the device has is not tried, as much as it has is.
TEST(PlanSearch, EachWayHasItsFate) {
  const std::vector<MadeWay> ways{
      {.least = 1.0, .time = 7.0, .memory = 300},
      {.least = 1.5, .refused = "the reader says no"},
      {.least = 2.0, .least_memory = kMadeCapacity, .time = 6.0, .memory = kMadeCapacity},
      {.least = 3.0, .least_memory = kMadeCapacity + 1, .time = 5.0, .memory = 2000, .fits = false},
      {.least = 4.0, .time = 4.0, .memory = 1500, .fits = false},
      {.least = 5.0, .error = "it cannot run"}};
  MadeRanks ranks(ways);
  const PlanSearch found = found_among(ways, ranks);
  EXPECT_THAT(ranks.rounds, ElementsAre(std::vector<std::uint64_t>{0, 2, 4, 5}));
  std::vector<PlanFate> fates;
  for (const PlanEntry& entry : found.entries) fates.push_back(entry.fate);
  EXPECT_THAT(fates, ElementsAre(PlanFate::predicted, PlanFate::refused, PlanFate::predicted, PlanFate::too_large,
                                 PlanFate::no_room, PlanFate::refused));
  EXPECT_EQ(found.entries[0].time, Seconds{7.0});
  EXPECT_EQ(found.entries[0].memory, 300);
  EXPECT_EQ(found.entries[1].why, "");
  EXPECT_EQ(found.entries[3].memory, 0);
  EXPECT_EQ(found.entries[4].time, Seconds{}) << "nobody knows how fast it would be";
  EXPECT_EQ(found.entries[4].memory, 1500);
  EXPECT_EQ(found.entries[5].why, "it cannot run");
  EXPECT_THAT(found.best, ElementsAre(2, 0));
  EXPECT_THAT(found.front, ElementsAre(2, 0));
  EXPECT_EQ(found.predictions, 4u);
  EXPECT_FALSE(found.nearest) << "some fit";
  PlanSearchOptions everything;
  everything.exhaustive = true;
  const PlanSearch all = found_among(ways, everything);
  EXPECT_EQ(all.entries[3].fate, PlanFate::no_room);
  EXPECT_EQ(all.entries[1].fate, PlanFate::refused);
  EXPECT_EQ(all.predictions, 5u);
}

/// Sixteen that take 20 s to 35 s with no memory to spare, then those of the test.
std::vector<MadeWay> behind_sixteen(const std::vector<MadeWay>& further) {
  std::vector<MadeWay> ways;
  for (int i = 0; i < 16; ++i) ways.push_back({.least = 1.0, .time = 20.0 + i, .memory = 100});
  ways.insert(ways.end(), further.begin(), further.end());
  return ways;
}

// The tenth takes 29 s. Slower ones are answers only if they need less than all that are as fast as their bound, on no
// more GPUs, and are at most half as slow again as the fastest, which takes 20 s, on as many.
TEST(PlanSearch, DropsWhatCanNeitherBeShownNorBeCheap) {
  const auto tried = [](const MadeWay& way) {
    const std::vector<MadeWay> ways = behind_sixteen({way});
    MadeRanks ranks(ways);
    const PlanSearch found = found_among(ways, ranks);
    if (ranks.rounds.size() < 2) {
      EXPECT_EQ(found.entries.back().fate, PlanFate::too_slow);
    }
    return ranks.rounds.size() == 2;
  };
  EXPECT_TRUE(tried({.least = 28.9, .least_memory = 100, .time = 40.0}));
  EXPECT_TRUE(tried({.least = 29.0, .least_memory = 100, .time = 40.0})) << "it may be the tenth";
  EXPECT_FALSE(tried({.least = 29.1, .least_memory = 100, .time = 40.0}));
  EXPECT_FALSE(tried({.least = 29.1, .least_memory = 101, .time = 40.0}));
  EXPECT_TRUE(tried({.least = 29.1, .least_memory = 99, .time = 40.0})) << "it may need less";
  EXPECT_TRUE(tried({.least = 30.0, .least_memory = 99, .time = 40.0}));
  EXPECT_FALSE(tried({.least = 30.1, .least_memory = 99, .time = 40.0})) << "too slow to be worth it";
  EXPECT_TRUE(tried({.least = 29.1, .least_memory = 200, .time = 40.0, .gpus = 2})) << "nobody knows how fast two are";
  EXPECT_TRUE(tried({.least = 99.0, .least_memory = 200, .time = 100.0, .gpus = 8}));
}

// Of those on as many GPUs: two take 40 s at best, half as much again is 60 s; what four do says nothing of two.
TEST(PlanSearch, IsAsSlowAsTheFastestOnAsManyGpus) {
  const auto tried = [](const MadeWay& way) {
    std::vector<MadeWay> ways;
    for (int i = 0; i < 14; ++i) ways.push_back({.least = 1.0, .time = 10.0 + i, .memory = 100});
    ways.push_back({.least = 1.0, .time = 50.0, .memory = 90, .gpus = 2});
    ways.push_back({.least = 1.0, .time = 40.0, .memory = 90, .gpus = 2});
    ways.push_back(way);
    MadeRanks ranks(ways);
    (void)found_among(ways, ranks);
    return ranks.rounds.size() == 2;
  };
  EXPECT_TRUE(tried({.least = 39.0, .least_memory = 90, .time = 70.0, .gpus = 2})) << "faster than any two";
  EXPECT_TRUE(tried({.least = 59.9, .least_memory = 89, .time = 70.0, .gpus = 2}));
  EXPECT_FALSE(tried({.least = 60.1, .least_memory = 89, .time = 70.0, .gpus = 2}));
  EXPECT_FALSE(tried({.least = 40.1, .least_memory = 90, .time = 70.0, .gpus = 2})) << "one of two needs no more";
  EXPECT_TRUE(tried({.least = 40.0, .least_memory = 90, .time = 70.0, .gpus = 2})) << "it may be as fast";
  EXPECT_FALSE(tried({.least = 19.1, .least_memory = 89, .time = 70.0, .gpus = 4}));
}

// Nine fit after a round: whatever is open may be the tenth.
TEST(PlanSearch, DropsNothingUntilTenAreKnown) {
  std::vector<MadeWay> ways;
  for (int i = 0; i < 16; ++i) ways.push_back({.least = 1.0, .time = 20.0 + i, .memory = 100, .fits = i < 9});
  ways.push_back({.least = 90.0, .least_memory = 500, .time = 95.0, .memory = 600});
  const PlanSearch nine = found_among(ways);
  EXPECT_THAT(nine.best, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 16));
  ways[9].fits = true;
  const PlanSearch ten = found_among(ways);
  EXPECT_THAT(ten.best, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(ten.entries[16].fate, PlanFate::too_slow);
}

// A way takes 9.18 s where its bound says 10: all bounds are lowered to 0.9 of themselves, with 2 % to spare. Those of
// 22.2 s and 22.3 s are then 19.98 s and 20.07 s; the tenth takes 20 s.
TEST(PlanSearch, LowersAllBoundsWhereOneWasTooHigh) {
  std::vector<MadeWay> ways;
  for (int i = 0; i < 16; ++i) ways.push_back({.least = 10.0, .time = 20.0, .memory = 100 + i});
  ways[4].time = 9.18;
  ways.push_back({.least = 22.2, .least_memory = 500, .time = 30.0, .memory = 600});
  ways.push_back({.least = 22.3, .least_memory = 500, .time = 30.0, .memory = 600});
  MadeRanks ranks(ways);
  const PlanSearch found = found_among(ways, ranks);
  ASSERT_EQ(ranks.rounds.size(), 2u);
  EXPECT_THAT(ranks.rounds[1], ElementsAre(16));
  EXPECT_EQ(found.entries[17].fate, PlanFate::too_slow);
  ways[5].time = 9.5;  // above 10 * 0.9: a bound that holds again lowers nothing
  MadeRanks again(ways);
  (void)found_among(ways, again);
  ASSERT_EQ(again.rounds.size(), 2u);
  EXPECT_THAT(again.rounds[1], ElementsAre(16));
}

// What a search before this one predicted is taken as it is, and counts as predicted.
TEST(PlanSearch, PredictsNothingTwice) {
  std::vector<MadeWay> ways;
  for (int i = 0; i < 6; ++i) ways.push_back({.least = 9.0 - i, .time = 20.0 - i, .memory = 7});
  PlanSearchOptions options;
  options.known = {point_of_way(1, ways[1]), point_of_way(4, ways[4]), point_of_way(5, {.error = "not so"})};
  std::vector<std::pair<std::size_t, std::size_t>> progress;
  options.on_progress = [&](std::size_t predicted, std::size_t open) { progress.emplace_back(predicted, open); };
  MadeRanks ranks(ways);
  const PlanSearch found = found_among(ways, ranks, options);
  EXPECT_THAT(ranks.rounds, ElementsAre(std::vector<std::uint64_t>{0, 2, 3}));
  EXPECT_THAT(found.best, ElementsAre(4, 3, 2, 1, 0));
  EXPECT_EQ(found.entries[5].why, "not so");
  EXPECT_EQ(found.predictions, 6u);
  EXPECT_THAT(progress, ElementsAre(Pair(6, 0)));
  options.known.clear();
  for (std::size_t i = 0; i < ways.size(); ++i) options.known.push_back(point_of_way(i, ways[i]));
  MadeRanks idle(ways);
  EXPECT_THAT(found_among(ways, idle, options).best, ElementsAre(5, 4, 3, 2, 1, 0));
  EXPECT_THAT(idle.rounds, IsEmpty()) << "no work is announced either";
}

// Told to stop, it asks for nothing more.
TEST(PlanSearch, StopsBetweenRounds) {
  std::vector<MadeWay> ways;
  for (int i = 0; i < 40; ++i) ways.push_back({.least = 1.0, .time = 20.0, .memory = 2000, .fits = false});
  ways.push_back({.least_memory = 1500, .memory = 1600, .fits = false});
  std::atomic<bool> stop = false;
  PlanSearchOptions options;
  options.stop = &stop;
  MadeRanks ranks(ways);
  ranks.after_round = [&] { stop = ranks.rounds.size() == 2; };
  const PlanSearch found = found_among(ways, ranks, options);
  EXPECT_THAT(ranks.sizes(), ElementsAre(16, 16));
  EXPECT_FALSE(found.nearest);
  MadeRanks never(ways);
  stop = true;
  (void)found_among(ways, never, options);
  EXPECT_THAT(never.rounds, IsEmpty());
}

/// Rank 0 as another rank hears it: so many rounds, then no more work.
class ToldRanks final : public Ranks {
 public:
  explicit ToldRanks(int rounds) : rounds_(rounds) {}
  [[nodiscard]] bool agreed(bool of_rank_0) const override {
    EXPECT_FALSE(of_rank_0);
    return rounds_-- > 0;
  }
  std::vector<SweepPoint> run(const Sweep& sweep, std::span<const std::uint64_t> indices,
                              const SweepRunOptions& options) override {
    EXPECT_EQ(sweep.title, "made");
    EXPECT_TRUE(indices.empty());
    EXPECT_FALSE(options.on_points);
    EXPECT_EQ(options.threads, 5);
    stop = options.stop;
    session = options.session;
    ++runs;
    return {};
  }
  int runs = 0;
  const std::atomic<bool>* stop = nullptr;
  const Session* session = nullptr;

 private:
  mutable int rounds_;
};

TEST(PlanSearch, OtherRanksWorkAsLongAsTheFirstSearches) {
  const PlanQuestion question = question_of({{}});
  Session session;
  ToldRanks ranks(3);
  const std::atomic<bool> stop = false;
  PlanSearchOptions options{.threads = 5, .stop = &stop};
  options.on_points = [](std::span<const SweepPoint>) {};
  help_search(question, session, ranks, options);
  EXPECT_EQ(ranks.runs, 3);
  EXPECT_EQ(ranks.stop, &stop);
  EXPECT_EQ(ranks.session, &session);
}

}  // namespace
}  // namespace ridgeline

// The search among the candidates of a plan, whose times and memory are made up: what is predicted in which round, what
// is dropped, what is shown. The answers are those of a slow search that looks at everything.
#include "sim/study/plan/plan_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// What the bounds say of a candidate, and what predicting it gives.
struct MadeWay {
  double least = 0.0;
  std::int64_t least_memory = 0;
  double time = 0.0;
  std::int64_t memory = 0;
  bool fits = true;
  std::string error = {};    ///< of its prediction
  std::string refused = {};  ///< by the reader
  std::int64_t gpus = 4;
  std::string strategy = "ddp";
};

constexpr std::int64_t kCapacity = 1000;

PlanQuestion question_of(const std::vector<MadeWay>& ways) {
  PlanQuestion question;
  question.capacity = kCapacity;
  question.sweep.title = "made";
  for (std::size_t i = 0; i < ways.size(); ++i) {
    PlanCandidate c;
    c.gpus = c.data = ways[i].gpus;
    c.micro_batch = static_cast<std::int64_t>(i) + 2;  // each another way
    c.strategy = ways[i].strategy;
    c.refused = ways[i].refused;
    c.least_memory = ways[i].least_memory;
    c.least_time = Seconds{ways[i].least};
    question.candidates.push_back(c);
  }
  return question;
}

SweepPoint point_of_way(std::size_t i, const MadeWay& way) {
  SweepPoint point;
  point.index = i;
  point.error = way.error;
  if (!point.ran()) return point;
  point.fits = way.fits;
  point.metrics[static_cast<std::size_t>(Metric::memory)] = static_cast<double>(way.memory);
  point.metrics[static_cast<std::size_t>(Metric::step_time)] = way.time;
  return point;
}

/// Gives what was made up, and writes down what it was asked for.
class MadeRanks final : public Ranks {
 public:
  explicit MadeRanks(const std::vector<MadeWay>& ways) : ways_(ways) {}

  [[nodiscard]] bool agreed(bool of_rank_0) const override {
    said.push_back(of_rank_0);
    return of_rank_0;
  }
  std::vector<SweepPoint> run(const Sweep& sweep, std::span<const std::uint64_t> indices,
                              const SweepRunOptions& options) override {
    EXPECT_EQ(sweep.title, "made");
    rounds.emplace_back(indices.begin(), indices.end());
    threads.insert(options.threads);
    sessions.insert(options.session);
    std::vector<SweepPoint> points;
    for (const std::uint64_t i : indices) points.push_back(point_of_way(i, ways_[i]));
    if (options.on_points) options.on_points(points);
    if (after_round) after_round();
    return points;
  }

  [[nodiscard]] std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> result;
    for (const auto& round : rounds) result.push_back(round.size());
    return result;
  }

  std::vector<std::vector<std::uint64_t>> rounds;
  std::set<int> threads;
  std::set<const Session*> sessions;
  mutable std::vector<bool> said;
  std::function<void()> after_round;

 private:
  const std::vector<MadeWay>& ways_;
};

PlanSearch found_among(const std::vector<MadeWay>& ways, MadeRanks& ranks, PlanSearchOptions options = {}) {
  const PlanQuestion question = question_of(ways);
  Session session;
  options.threads = 3;
  PlanSearch found = search_plan(question, session, ranks, options);
  EXPECT_EQ(ranks.said.size(), ranks.rounds.size() + 1) << "work is announced for each round, and its end";
  if (!ranks.said.empty()) {
    EXPECT_EQ(std::count(ranks.said.begin(), ranks.said.end(), true), static_cast<std::ptrdiff_t>(ranks.rounds.size()));
    EXPECT_FALSE(ranks.said.back());
  }
  for (const Session* each : ranks.sessions) EXPECT_EQ(each, &session);
  for (const int each : ranks.threads) EXPECT_EQ(each, 3);
  EXPECT_EQ(found.entries.size(), ways.size());
  for (std::size_t i = 0; i < found.entries.size(); ++i)
    EXPECT_EQ(found.entries[i].candidate.micro_batch, question.candidates[i].micro_batch) << "in their order";
  return found;
}
PlanSearch found_among(const std::vector<MadeWay>& ways, PlanSearchOptions options = {}) {
  MadeRanks ranks(ways);
  return found_among(ways, ranks, std::move(options));
}

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
      {.least = 2.0, .least_memory = kCapacity, .time = 6.0, .memory = kCapacity},
      {.least = 3.0, .least_memory = kCapacity + 1, .time = 5.0, .memory = 2000, .fits = false},
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

// Equal times are ordered by memory, equal memory by the order of the candidates.
TEST(PlanSearch, TheBestAreOrderedByTimeThenMemoryThenPlace) {
  const std::vector<MadeWay> ways{
      {.time = 3.0, .memory = 50}, {.time = 2.0, .memory = 90}, {.time = 2.0, .memory = 70},
      {.time = 2.0, .memory = 70}, {.time = 1.0, .memory = 95}, {.time = 3.1, .memory = 50},
      {.time = 1.6, .memory = 10}, {.time = 1.5, .memory = 94}, {.time = 1.5, .memory = 93}};
  const PlanSearch found = found_among(ways);
  EXPECT_THAT(found.best, ElementsAre(4, 8, 7, 6, 2, 3, 1, 0, 5));
  EXPECT_THAT(found.front, ElementsAre(4, 8)) << "half as slow again as the fastest is 1.5 s";
}

// A way on fewer GPUs is worth something where it is slower; one on more is not where it is as slow.
TEST(PlanSearch, TheFrontIsOfTimeMemoryAndGpus) {
  const std::vector<MadeWay> ways{{.time = 1.0, .memory = 95, .gpus = 8},  {.time = 1.2, .memory = 95, .gpus = 8},
                                  {.time = 1.4, .memory = 80, .gpus = 8},  {.time = 2.0, .memory = 95, .gpus = 4},
                                  {.time = 2.1, .memory = 96, .gpus = 4},  {.time = 2.9, .memory = 94, .gpus = 4},
                                  {.time = 1.4, .memory = 80, .gpus = 16}, {.time = 3.1, .memory = 5, .gpus = 4}};
  EXPECT_THAT(found_among(ways).front, ElementsAre(0, 2, 3, 5));
}

// Where nothing has to stay equal, strategies are names for one thing: of ways that are predicted alike and differ by
// their strategy alone, one is shown.
TEST(PlanSearch, ShowsOneOfThoseThatDifferByNameAlone) {
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

TEST(PlanSearch, ShowsTen) {
  std::vector<MadeWay> ways;
  for (int i = 0; i < 12; ++i) ways.push_back({.time = 1.0 + i, .memory = 7});
  EXPECT_THAT(found_among(ways).best, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
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

// Nothing fits: the one that needs least, the first of equal ones, whoever was refused or stands before it.
TEST(PlanSearch, TheNearestNeedsLeastOfAll) {
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
TEST(PlanSearch, TheNearestMayBeOneThatIsTooLarge) {
  std::vector<MadeWay> ways{{.least_memory = 1, .memory = 1200, .fits = false}};
  for (int i = 0; i < 40; ++i) ways.push_back({.least_memory = 1200 - i, .memory = 1300 + i, .fits = false});
  ways[20].memory = 1190;  // its bound: 1181
  MadeRanks ranks(ways);
  std::vector<std::pair<std::size_t, std::size_t>> progress;
  PlanSearchOptions options;
  options.on_progress = [&](std::size_t predicted, std::size_t open) { progress.emplace_back(predicted, open); };
  const PlanSearch found = found_among(ways, ranks, options);
  // Bounds 1161 to 1176 are those of 40 down to 25; 1177 to 1192 those of 24 to 9; the next is 1193, above 1190.
  EXPECT_THAT(ranks.rounds, ElementsAre(from_to(0, 1), from_to(25, 41), from_to(9, 25)));
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

TEST(PlanSearch, FindsWhatLookingAtEverythingFinds) {
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
      if (!way.fits) way.memory += kCapacity;
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

// What a plan says of its best ways, against the runs that it stands for: rows, how sure their order is, other worlds,
// and a device with more memory.
#include "sim/study/plan/plan_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/answer/step_run.h"
#include "sim/study/plan/plan_question.h"
#include "sim/study/sweep/sweep_scenario.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A question of several ways, some of which are then said to be the best.
struct AskedPlan {
  explicit AskedPlan(std::int64_t gpus, std::int64_t batch = 4) {
    PlanRequest request;
    request.source.text =
        "{hardware: nvidia-h200-sxm-141gb, model: {family: llama, code: plain, layers: 2, heads: 8, hidden: 512, "
        "feed_forward: 1024, vocabulary: 8000}, training: {micro_batch: " +
        std::to_string(batch) + ", sequence_length: 256, precision: bf16}}";
    request.source.text_name = "question";
    request.source.overrides = {{"training.parallel.pipeline", "1", ""}};
    request.gpus = {gpus};
    request.engine = "roofline";
    question = plan_question(request, session, 2);
    for (const PlanCandidate& candidate : question.candidates) {
      PlanEntry entry;
      entry.candidate = candidate;
      entry.fate = candidate.refused.empty() ? PlanFate::predicted : PlanFate::refused;
      search.entries.push_back(entry);
    }
  }
  [[nodiscard]] std::size_t way(const std::function<bool(const PlanCandidate&)>& is) const {
    for (std::size_t i = 0; i < question.candidates.size(); ++i)
      if (question.candidates[i].refused.empty() && is(question.candidates[i])) return i;
    ADD_FAILURE() << "there is no such way";
    return 0;
  }
  [[nodiscard]] Scenario scenario(std::size_t i) {
    return scenario_of(question.sweep, {i}, session.descriptions(), sheets).scenario;
  }
  [[nodiscard]] Seconds time(const Scenario& s) { return StepRun(session, s, "roofline").timeline().step; }
  [[nodiscard]] PlanAnswer answer() { return answer_plan(question, search, session, 2); }

  Session session;
  PlanQuestion question;
  PlanSearch search;
  Remembered<HardwareSheet> sheets;
};

bool is_way(const PlanCandidate& c, const std::string& strategy, std::int64_t data, std::int64_t micro_batch,
            const std::string& recompute = "none") {
  return c.strategy == strategy && c.data == data && c.micro_batch == micro_batch && c.recompute == recompute &&
         !c.sequence_parallel;
}

TEST(PlanAnswer, NothingIsSaidWhereNothingFits) {
  AskedPlan asked(1);
  const PlanAnswer answer = asked.answer();
  EXPECT_THAT(answer.rows, IsEmpty());
  EXPECT_THAT(answer.changes, IsEmpty());
  EXPECT_FALSE(answer.order);
  EXPECT_FALSE(answer.with_memory);
}

TEST(PlanAnswer, OneWayStandsAlone) {
  AskedPlan asked(1);
  asked.search.best = {asked.way([](const PlanCandidate& c) { return c.micro_batch == 2; })};
  const PlanAnswer answer = asked.answer();
  ASSERT_EQ(answer.rows.size(), 1u);
  EXPECT_EQ(answer.rows[0].entry, asked.search.best[0]);
  EXPECT_FALSE(answer.order);
  EXPECT_FALSE(answer.with_memory);
  EXPECT_EQ(answer.changes.size(), 3u);
}

// Rows are the best, in their order, each with the prediction of its scenario and its difference from the first.
TEST(PlanAnswer, RowsAreThePredictionsOfTheBest) {
  AskedPlan asked(2);
  const std::vector<std::size_t> best{
      asked.way([](const PlanCandidate& c) { return is_way(c, "fsdp", 2, 2); }),
      asked.way([](const PlanCandidate& c) { return is_way(c, "ddp", 2, 1); }),
      asked.way([](const PlanCandidate& c) { return c.tensor == 2 && is_way(c, "ddp", 1, 4, "block"); })};
  asked.search.best = best;
  const PlanAnswer answer = asked.answer();
  ASSERT_EQ(answer.rows.size(), 3u);
  EXPECT_EQ(answer.rows[1].side.label, "data 2 ddp; 2 x 1");
  EXPECT_EQ(answer.rows[0].against_best.time, Seconds{});
  EXPECT_THAT(answer.rows[0].against_best.classes, IsEmpty());
  std::vector<Prediction> predictions;
  for (std::size_t i = 0; i < 3; ++i) {
    const PlanRow& row = answer.rows[i];
    const PlanCandidate& candidate = asked.question.candidates[best[i]];
    EXPECT_EQ(row.entry, best[i]);
    EXPECT_EQ(row.side.label, split_words(candidate) + "; " + step_words(candidate));
    predictions.push_back(predict(asked.scenario(best[i]), "roofline"));
    EXPECT_EQ(row.side.prediction.step.time, predictions[i].step.time);
    EXPECT_EQ(row.side.prediction.memory.device_used, predictions[i].memory.device_used);
    if (i == 0) continue;
    EXPECT_EQ(row.against_best.time, predictions[i].step.time - predictions[0].step.time);
    EXPECT_EQ(row.against_best.memory, predictions[i].memory.device_used - predictions[0].memory.device_used);
  }
}

// The first two rows: whether their ranges meet, how much longer the second takes where both err as far, and what share
// of the first step is in kernels that the second has too.
TEST(PlanAnswer, TheOrderOfTheFirstTwoIsAsSureAsTheirRangesSay) {
  for (const bool turned : {false, true})
    for (const auto& [strategy, micro_batch] :
         std::vector<std::pair<std::string, std::int64_t>>{{"ddp", 1}, {"zero1", 2}, {"zero2", 2}, {"ddp", 2}}) {
      AskedPlan asked(2);
      asked.search.best = {
          asked.way([](const PlanCandidate& c) { return is_way(c, "ddp", 2, 2); }),
          asked.way(
              [&name = strategy, &size = micro_batch](const PlanCandidate& c) { return is_way(c, name, 2, size); }),
          asked.way([](const PlanCandidate& c) { return c.tensor == 2 && is_way(c, "ddp", 1, 4, "block"); })};
      if (turned) std::swap(asked.search.best[0], asked.search.best[2]);
      const PlanAnswer answer = asked.answer();
      ASSERT_TRUE(answer.order);
      const Prediction& first = answer.rows[0].side.prediction;
      const Prediction& second = answer.rows[1].side.prediction;
      EXPECT_EQ(answer.order->overlap, !(second.step.low > first.step.high));
      const double low = second.step.low.value() / first.step.low.value(),
                   high = second.step.high.value() / first.step.high.value();
      EXPECT_DOUBLE_EQ(answer.order->least, low < high ? low : high);
      EXPECT_DOUBLE_EQ(answer.order->most, low < high ? high : low);
      EXPECT_EQ(answer.order->holds(), low >= 1.0 && high >= 1.0);
      double common = 0.0;
      for (const KernelGroup& mine : first.kernels) {
        double theirs = 0.0;
        for (const KernelGroup& other : second.kernels)
          if (other.name == mine.name && other.shape == mine.shape && other.op == mine.op) theirs += other.time.value();
        common += std::min(mine.time.value(), theirs);
      }
      EXPECT_GT(common, 0.0);
      EXPECT_NEAR(answer.order->common, std::min(1.0, common / first.step.time.value()), 1e-9);
      EXPECT_EQ(answer.order->holds(), answer.order->least >= 1.0);
    }
}

/// The step of each row in a world, the fastest of them, and that of the first row.
void expect_change(AskedPlan& asked, const PlanAnswer& answer, std::size_t place, const std::string& what,
                   const std::function<void(Scenario&)>& make) {
  ASSERT_LT(place, answer.changes.size());
  const PlanChange& change = answer.changes[place];
  EXPECT_EQ(change.what, what);
  std::vector<Seconds> times;
  for (const std::size_t i : asked.search.best) {
    Scenario other = asked.scenario(i);
    make(other);
    times.push_back(asked.time(other));
  }
  const auto fastest = std::min_element(times.begin(), times.end());
  EXPECT_EQ(change.row, static_cast<std::size_t>(fastest - times.begin())) << what;
  EXPECT_EQ(change.time, *fastest) << what;
  EXPECT_EQ(change.of_best, times.front()) << what;
}

// Another host, slower links, a slower network where there is one: each row is predicted there.
TEST(PlanAnswer, OtherWorldsHaveOtherBestWays) {
  for (const std::int64_t gpus : {2, 16}) {
    AskedPlan asked(gpus, 64);
    const std::int64_t of_rank = 64 / gpus;
    asked.search.best = {
        asked.way([&](const PlanCandidate& c) { return is_way(c, "fsdp", gpus, of_rank); }),
        asked.way([&](const PlanCandidate& c) { return is_way(c, "ddp", gpus, of_rank); }),
        asked.way([&](const PlanCandidate& c) { return c.tensor == 2 && is_way(c, "ddp", gpus / 2, of_rank * 2); })};
    const PlanAnswer answer = asked.answer();
    ASSERT_EQ(answer.changes.size(), gpus == 2 ? 3u : 4u) << "one node has no network between nodes";
    expect_change(asked, answer, 0, "a host twice as slow", [](Scenario& s) { s.host.scale *= 2; });
    expect_change(asked, answer, 1, "a host twice as fast", [](Scenario& s) { s.host.scale /= 2; });
    expect_change(asked, answer, 2, "links between GPUs half as fast", [](Scenario& s) {
      s.cluster->links.rate = s.cluster->links.rate / 2;
      s.cluster->pcie.rate = s.cluster->pcie.rate / 2;
      s.cluster->pcie.host = s.cluster->pcie.host / 2;
    });
    if (gpus == 16) {
      expect_change(asked, answer, 3, "a network between nodes half as fast",
                    [](Scenario& s) { s.cluster->nics.rate = s.cluster->nics.rate / 2; });
    }
  }
}

/// Ways on one GPU by their step time, fastest first, with what each needs.
struct KnownWay {
  std::size_t entry;
  Seconds time;
  std::int64_t needed;
};
std::vector<KnownWay> known_ways(AskedPlan& asked) {
  std::vector<KnownWay> ways;
  for (std::size_t i = 0; i < asked.question.candidates.size(); ++i) {
    if (!asked.question.candidates[i].refused.empty()) continue;
    const StepRun run(asked.session, asked.scenario(i), "roofline");
    ways.push_back({i, run.timeline().step, run.memory().needed_high});
  }
  std::sort(ways.begin(), ways.end(), [](const KnownWay& a, const KnownWay& b) { return a.time < b.time; });
  return ways;
}

// Of ways that do not fit, the one that needs least is named if it is faster than the best, which is here said to be
// the slowest of all.
TEST(PlanAnswer, MoreMemoryWouldAllowAFasterWay) {
  AskedPlan asked(1, 64);
  const std::vector<KnownWay> ways = known_ways(asked);
  ASSERT_GT(ways.size(), 12u);
  const KnownWay slowest = ways.back();
  asked.search.best = {slowest.entry};
  const auto named = [&] { return asked.answer().with_memory; };
  const auto by_need = [&](std::size_t n) {  // of the n fastest, which of them is the smallest
    return *std::min_element(ways.begin(), ways.begin() + static_cast<std::ptrdiff_t>(n),
                             [](const KnownWay& a, const KnownWay& b) { return a.needed < b.needed; });
  };
  EXPECT_FALSE(named()) << "all fit";
  const auto set = [&](const KnownWay& way, PlanFate fate, std::int64_t memory, double least_time) {
    PlanEntry& entry = asked.search.entries[way.entry];
    entry.fate = fate;
    (fate == PlanFate::no_room ? entry.memory : entry.candidate.least_memory) = memory;
    entry.candidate.least_time = Seconds{least_time};
  };
  set(ways[0], PlanFate::no_room, 500, 0.0);
  set(ways[1], PlanFate::too_large, 600, 0.0);
  set(ways[2], PlanFate::too_large, 400, 0.0);
  std::optional<PlanWithMemory> found = named();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->entry, by_need(3).entry);
  EXPECT_EQ(found->time, by_need(3).time);
  EXPECT_EQ(found->memory, by_need(3).needed);
  // Those that cannot be faster by their bound are left out.
  for (std::size_t i = 0; i < 3; ++i) {
    if (ways[i].entry == by_need(3).entry) continue;
    set(ways[i], PlanFate::too_large, 400, slowest.time.value());
  }
  found = named();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->entry, by_need(3).entry);
  set(by_need(3), PlanFate::no_room, 400, slowest.time.value());
  EXPECT_FALSE(named());
  // Nor does anything count that is as slow as the best.
  set(by_need(3), PlanFate::predicted, 0, 0.0);
  asked.search.entries[slowest.entry].fate = PlanFate::no_room;
  asked.search.entries[slowest.entry].candidate.least_time = Seconds{};
  EXPECT_FALSE(named());
}

// Eight are tried, in order of what they are thought to need; what the ninth needs is not looked at.
TEST(PlanAnswer, TriesTheEightSmallest) {
  AskedPlan asked(1, 64);
  std::vector<KnownWay> ways = known_ways(asked);
  asked.search.best = {ways.back().entry};
  ways.pop_back();
  ways.resize(10);
  std::sort(ways.begin(), ways.end(), [](const KnownWay& a, const KnownWay& b) { return a.needed > b.needed; });
  ASSERT_GT(ways[7].needed, ways[8].needed);
  for (std::size_t i = 0; i < ways.size(); ++i) {  // thought to need more the less they do
    PlanEntry& entry = asked.search.entries[ways[i].entry];
    entry.fate = i % 2 == 0 ? PlanFate::no_room : PlanFate::too_large;
    entry.memory = i % 2 == 0 ? 100 + static_cast<std::int64_t>(i) : 0;
    entry.candidate.least_memory = i % 2 == 0 ? 0 : 100 + static_cast<std::int64_t>(i);
    entry.candidate.least_time = Seconds{};
  }
  const PlanAnswer answer = asked.answer();
  ASSERT_TRUE(answer.with_memory);
  EXPECT_EQ(answer.with_memory->entry, ways[7].entry);
  EXPECT_EQ(answer.with_memory->memory, ways[7].needed);
}

// One that the reader refuses after all is passed over; and no other way than those that do not fit is tried.
TEST(PlanAnswer, PassesOverWhatCannotRun) {
  AskedPlan asked(1, 64);
  const std::vector<KnownWay> ways = known_ways(asked);
  asked.search.best = {ways.back().entry};
  const KnownWay smallest =
      *std::min_element(ways.begin(), ways.end(), [](const auto& a, const auto& b) { return a.needed < b.needed; });
  const std::size_t refused = ways[0].entry == smallest.entry ? ways[1].entry : ways[0].entry;
  asked.question.sweep.axes[0].values[refused].overrides.push_back({"training.micro_batch", "0", ""});
  asked.search.entries[refused].fate = PlanFate::no_room;
  EXPECT_FALSE(asked.answer().with_memory);
  std::size_t other = 0;
  while (ways[other].entry == refused || ways[other].entry == smallest.entry) ++other;
  asked.search.entries[ways[other].entry].fate = PlanFate::no_room;
  for (const std::size_t i : {refused, ways[other].entry}) asked.search.entries[i].candidate.least_time = Seconds{};
  ASSERT_TRUE(asked.answer().with_memory);
  EXPECT_EQ(asked.answer().with_memory->entry, ways[other].entry);
}

}  // namespace
}  // namespace ridgeline

// Ways to train whose bounds, times and memory are made up, for the search of a plan.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sim/study/plan/plan_search.h"

namespace ridgeline::testing_support {

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

inline constexpr std::int64_t kMadeCapacity = 1000;

inline PlanQuestion question_of(const std::vector<MadeWay>& ways) {
  PlanQuestion question;
  question.capacity = kMadeCapacity;
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

inline SweepPoint point_of_way(std::size_t i, const MadeWay& way) {
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

inline PlanSearch found_among(const std::vector<MadeWay>& ways, MadeRanks& ranks, PlanSearchOptions options = {}) {
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
inline PlanSearch found_among(const std::vector<MadeWay>& ways, PlanSearchOptions options = {}) {
  MadeRanks ranks(ways);
  return found_among(ways, ranks, std::move(options));
}

}  // namespace ridgeline::testing_support

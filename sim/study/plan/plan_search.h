// Branch and bound over the candidates of a plan.
//
// Candidates are predicted in rounds, those of the smallest least time first. What is left is dropped where its bounds
// say that it is no answer: its least time is above that of the tenth best, and it adds nothing to the set of which
// nothing is better in time, memory and GPUs (plans at most kSlowestOfFront slower than the fastest on as many GPUs).
// Rounds depend on the candidates alone, so threads, processes and interruptions change no bit of the result. Where a
// prediction falls below its bound, all bounds are lowered by as much (it has not been seen; tests look for it).
#pragma once

#include <atomic>
#include <functional>
#include <span>

#include "sim/answer/session.h"
#include "sim/study/plan/plan.h"
#include "sim/study/sweep/sweep_ranks.h"

namespace ridgeline {

struct PlanSearchOptions {
  int threads = 0;                          ///< 0: all cores
  const std::atomic<bool>* stop = nullptr;  ///< set: the search ends; its result means nothing
  std::vector<SweepPoint> known = {};       ///< predicted earlier, ascending
  std::function<void(std::span<const SweepPoint>)> on_points = {};
  /// Now and then: predictions made, candidates that may still be answers.
  std::function<void(std::size_t, std::size_t)> on_progress = {};
  bool exhaustive = false;  ///< predicts all that run, whatever the bounds say
};

/// On rank 0, or the only one.
PlanSearch search_plan(const PlanQuestion& question, Session& session, Ranks& ranks, const PlanSearchOptions& options);
/// On the other ranks, as long as rank 0 searches.
void help_search(const PlanQuestion& question, Session& session, Ranks& ranks, const PlanSearchOptions& options);

}  // namespace ridgeline

// The best ways to train on so many GPUs: what is asked, the candidates, and what became of each.
//
// A candidate is a scenario: degrees of parallelism, how data parallel ranks stay equal, the schedule of a pipeline,
// micro-batch and recomputation. All have the batch of the step that was asked for. The reader of scenarios says which
// can run; lower bounds of memory and time leave out what cannot be the answer; the rest is predicted. The result is
// that of predicting all of them (tests/study/plan_test.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/study/sweep/sweep.h"
#include "sim/study/sweep/sweep_point.h"

namespace ridgeline {

struct PlanRequest {
  ScenarioSource source;                   ///< its changes of training.parallel and of recomputation are kept
  std::vector<std::int64_t> gpus;          ///< how many, ascending; each is planned for
  std::optional<std::int64_t> batch = {};  ///< sequences of a step of all ranks; none: the scenario's
  std::string engine = "analytic";
  std::string file = {};  ///< what messages call the question
};

/// A way to train, and its lower bounds.
struct PlanCandidate {
  std::int64_t gpus = 1, data = 1, tensor = 1, pipeline = 1, context = 1, expert = 1;
  std::int64_t micro_batch = 1, accumulation = 1;
  std::string strategy, schedule, tensor_style, recompute;  ///< as scenarios spell them; empty: not said
  std::int64_t virtual_stages = 0, replicate = 0;           ///< 0: not said
  bool sequence_parallel = false, no_sync = false;
  std::vector<config::Override> changes;  ///< of the scenario, as --set takes them
  std::string refused_key, refused;       ///< why the reader takes no such scenario; empty where it does
  std::int64_t refusals = 1;              ///< ways that were refused for it: one may stand for all
  std::int64_t least_memory = 0;          ///< bytes of the fullest device, at least
  Seconds least_time;                     ///< of the step, at least
};

enum class PlanFate : std::uint8_t {
  predicted,  ///< fits, time and memory are known
  no_room,    ///< predicted: it does not fit
  refused,    ///< the scenario cannot run
  too_large,  ///< its least memory is more than the device has
  too_slow    ///< its least time is more than that of the answers
};
inline constexpr std::size_t kPlanFates = 5;

struct PlanEntry {
  PlanCandidate candidate;
  PlanFate fate = PlanFate::too_slow;
  Seconds time;             ///< where it is predicted
  std::int64_t memory = 0;  ///< of the fullest device; where it does not fit, what it would need
  std::string why = {};     ///< it was left out
};

/// How many plans are shown, and how much slower than the fastest on as many GPUs one of less memory may be.
inline constexpr std::size_t kPlansShown = 10;
inline constexpr double kSlowestOfFront = 1.5;

struct PlanSearch {
  std::vector<PlanEntry> entries;      ///< in the order of the candidates
  std::vector<std::size_t> best;       ///< entries by step time, at most kPlansShown
  std::vector<std::size_t> front;      ///< nothing is better in time, memory and GPUs; by step time
  std::optional<std::size_t> nearest;  ///< where nothing fits: that which needs least memory
  std::size_t predictions = 0;         ///< made, for whoever wants to know how much the bounds saved
};

/// The question resolved: candidates as the points of a sweep, whose machinery keeps and spreads them.
struct PlanQuestion {
  Sweep sweep;
  std::vector<PlanCandidate> candidates;  ///< one a point
  std::string title, cluster;             ///< name of the cluster, or "described in the scenario"
  std::string assumed;                    ///< a sentence where the cluster was not given; else empty
  std::int64_t batch = 0;                 ///< sequences of a step
  std::int64_t capacity = 0;              ///< bytes of a device
  std::string hardware;
};

/// Labels: "data 4, tensor 2, fsdp", "4 x 2 sequences, blocks again".
std::string split_words(const PlanCandidate& candidate);
std::string step_words(const PlanCandidate& candidate);

}  // namespace ridgeline

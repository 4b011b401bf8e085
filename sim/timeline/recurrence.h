// The recurrence itself: one host thread, one stream, a queue of bounded depth between them.
//
// Launches that repeat are run until a run moves every time on as the one before it did, and decides every wait the
// same way: then all further ones do, as long as no lead by which a wait was decided is used up. These are added at
// once. So a step of many micro-batches takes the time of a few.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/timeline/issue_plan.h"

namespace ridgeline {

struct TokenPlan;

/// Times in seconds. Starts with an idle host and an idle GPU at 0 and carries its state from step to step.
class Recurrence {
 public:
  /// `tokens`: behind the launches of each step; null: none.
  Recurrence(int queue_depth, double start_latency, const TokenPlan* tokens = nullptr);

  struct Span {
    double issued = 0.0, start = 0.0, end = 0.0;
  };
  struct Step {
    double starved = 0.0;                            ///< the GPU waits for the host, beyond the gaps
    double repeated_host = 0.0, repeated_gpu = 0.0;  ///< when host and GPU are done with the last repeated run
    double repeated_starved = 0.0;  ///< of several streams: in what the plan repeats, which is run once
    /// Moments of tokens that are not written out: when the GPU was done with all in front of each, and with the last.
    std::vector<double> token_begins{};
  };

  /// Runs one step; `durations` and `spans` have one entry a launch. Launches that repeat: spans of their first run.
  /// Without repeated launches `spans` may be empty: then nobody asks for them, nor for what is said of the step.
  Step step(const IssuePlan& plan, std::span<const double> durations, std::span<Span> spans);

  [[nodiscard]] double host() const { return offset_ + (base_ + host_); }  ///< is done with all steps so far
  [[nodiscard]] double gpu() const { return offset_ + (base_ + gpu_); }    ///< likewise

 private:
  /// How the waits of a run were decided: which side came later each time, and by how much at least.
  struct Decisions {
    std::uint64_t sides = 0;
    double host_later = std::numeric_limits<double>::infinity(), gpu_later = host_later;
    void decide(double host, double gpu);
  };
  /// Host, GPU and starts of the queue, oldest first.
  using State = std::vector<double>;

  void pass(const Issue& issue);
  template <bool kSpans, bool kFromWaits = false>
  void run(const IssuePlan& plan, std::span<const double> durations, std::span<Span> spans, std::size_t begin,
           std::size_t end, Step& step);
  void repeat(const IssuePlan& plan, std::span<const double> durations, std::span<Span> spans, Step& step);
  Decisions run_deciding(const IssuePlan& plan, std::span<const double> durations, double& starved);
  void shift(double by);
  void keep_state(State& state) const;
  void advance(const State& from, const State& to, double runs);

  void run_tokens(const TokenPlan& plan, Step& step);
  void run_alike(const TokenPlan& plan, std::size_t begin, std::size_t end);
  void run_token(std::span<const Issue> issues, std::span<const std::uint32_t> kernel_of,
                 std::span<const double> durations);

  double latency_, host_ = 0.0, gpu_ = 0.0;
  std::vector<double> starts_;  ///< of the last `queue_depth` launches, a ring
  std::size_t next_ = 0;

  // Plans that count from waits: the time at hand, as all above, is counted from the last wait, which is at `base_`
  // of the step, which is at `offset_`. What follows a wait does not depend on when it was.
  double base_ = 0.0, offset_ = 0.0;
  double leg_ = 0.0;  ///< starved since the last wait
  struct Local {
    double host = 0.0, gpu = 0.0, leg = 0.0;
    std::size_t next = 0;
    std::vector<double> starts;
    bool operator==(const Local&) const = default;
  };
  /// Tokens that were run, from the same state as they would be again.
  struct KnownTokens {
    bool made = false;
    Local before, after;
    struct Wait {
      double moved = 0.0, starved = 0.0;  ///< of the time since the wait before
      double first = 0.0;                 ///< of the first launch behind it, starved
    };
    std::vector<Wait> waits;
    struct Begin {
      std::size_t waits = 0;  ///< so far
      double gpu = 0.0;
    };
    std::vector<Begin> begins;
  };
  [[nodiscard]] KnownTokens::Wait wait_of_token(const Issue& first) const;

  const TokenPlan* tokens_ = nullptr;
  KnownTokens known_;
};

}  // namespace ridgeline

// The recurrence itself: one host thread, one stream, a queue of bounded depth between them.
#pragma once

#include <span>
#include <vector>

#include "sim/timeline/issue_plan.h"

namespace ridgeline {

/// Times in seconds. Starts with an idle host and an idle GPU at 0 and carries its state from step to step.
class Recurrence {
 public:
  Recurrence(int queue_depth, double start_latency);

  struct Span {
    double issued = 0.0, start = 0.0, end = 0.0;
  };

  /// Runs one step; `durations` and `spans` have one entry a launch.
  void step(const IssuePlan& plan, std::span<const double> durations, std::span<Span> spans);

  [[nodiscard]] double host() const { return host_; }  ///< when the host is done with all steps so far
  [[nodiscard]] double gpu() const { return gpu_; }    ///< when the GPU is

 private:
  void pass(const Issue& issue);

  double latency_, host_ = 0.0, gpu_ = 0.0;
  std::vector<double> starts_;  ///< of the last `queue_depth` launches, a ring
  std::size_t next_ = 0;
};

}  // namespace ridgeline

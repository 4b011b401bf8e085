// What the header of an op trace says about the run it holds, beside the operations themselves.
#pragma once

#include <string>
#include <vector>

#include "sim/workload/op_trace.h"
#include "sim/workload/parallel/parallel.h"

namespace ridgeline::trace {

inline constexpr int kFormatVersion = 1;

struct RecordingInfo {
  std::string producer{};   ///< which program wrote it
  std::string title{};      ///< what was trained, for people
  std::string precision{};  ///< as a scenario's training.precision; empty = not known
  double samples = 0.0;     ///< sequences (or images) of one step; 0 = not known
  double tokens = 0.0;      ///< tokens of one step; 0 = not known
  /// Over how many ranks the step is spread, each way; a file says nothing else of it, but that parameters are sharded
  /// shows in what is exchanged.
  ParallelDescription ranks{};
};

/// The degrees that a header holds under "parallel", by name; those of 1 are left out.
template <typename Parallel, typename Visit>
void for_each_degree(Parallel& ranks, Visit&& visit) {
  visit("data", ranks.data), visit("replicate", ranks.replicate), visit("tensor", ranks.tensor);
  visit("context", ranks.context), visit("expert", ranks.expert), visit("pipeline", ranks.pipeline);
  visit("split", ranks.split);
}

/// An op trace with its header, as one file holds it.
struct Recording {
  RecordingInfo info;
  OpTrace trace;
};

}  // namespace ridgeline::trace

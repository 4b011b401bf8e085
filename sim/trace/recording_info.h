// What the header of an op trace says about the run it holds, beside the operations themselves.
#pragma once

#include <string>
#include <vector>

#include "sim/workload/op_trace.h"

namespace ridgeline::trace {

inline constexpr int kFormatVersion = 1;

struct RecordingInfo {
  std::string producer{};   ///< which program wrote it
  std::string title{};      ///< what was trained, for people
  std::string precision{};  ///< as a scenario's training.precision; empty = not known
  double samples = 0.0;     ///< sequences (or images) of one step; 0 = not known
  double tokens = 0.0;      ///< tokens of one step; 0 = not known
};

/// An op trace with its header, as one file holds it.
struct Recording {
  RecordingInfo info;
  OpTrace trace;
};

}  // namespace ridgeline::trace

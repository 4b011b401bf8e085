// Which part of a profiler trace is one training step.
//
// Marked steps (ProfilerStep#N) are preferred; without them the ends of the optimizer's steps divide the recording;
// with fewer than two of those it is taken as one step. Of several steps the one of median GPU time is chosen.
#pragma once

#include <string>
#include <vector>

#include "sim/trace/profiler/profiler_events.h"

namespace ridgeline::trace {

/// Host time that belongs to one step, microseconds.
struct StepWindow {
  double begin = 0.0, end = 0.0;
  std::string name;  ///< "ProfilerStep#3, one of 5", "the whole recording"
  bool marked = false;
  [[nodiscard]] bool contains(double time) const { return time >= begin && time < end; }
};

/// Throws UserError where a recording holds nothing that can be replayed; `path` stands for the file.
void refuse_empty(const ProfilerEvents& events, const std::string& path);

/// `issued` holds for each of `events.gpu` when the host issued it.
StepWindow choose_step(const ProfilerEvents& events, const std::vector<double>& issued);

}  // namespace ridgeline::trace

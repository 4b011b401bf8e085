// What the host does when, in one steady step: the recurrence's times laid over the groups of its plan.
#pragma once

#include <span>
#include <vector>

#include "sim/timeline/issue_plan.h"
#include "sim/timeline/timeline.h"

namespace ridgeline {

/// Seconds, relative to the step's begin on the GPU as in Timeline::kernels.
struct HostSlice {
  HostGroup group;
  double begin = 0.0, end = 0.0;
};

/// One slice a group, in order, without overlap; a group stretches where the launch queue is full. `plan` is the one
/// the timeline was run with.
std::vector<HostSlice> host_slices(const IssuePlan& plan, const Timeline& timeline, const Gpu& gpu);

}  // namespace ridgeline

#include "sim/timeline/host_slices.h"

#include <algorithm>
#include <cstddef>

namespace ridgeline {
namespace {

/// When a wait of a step of several streams ended: as long before the next launch was issued as the host worked
/// between. `otherwise` where no launch comes before another wait.
double end_of_wait(const IssuePlan& plan, const Timeline& timeline, std::size_t wait, double otherwise) {
  double work = 0.0;
  for (std::size_t next = wait + 1; next < plan.groups.size(); ++next) {
    const HostGroup& group = plan.groups[next];
    if (group.kind != HostGroup::Kind::work) break;
    if (group.launches > 0) return timeline.kernels[group.first_launch].issued.value() - work - group.share;
    work += group.rest;
  }
  return otherwise;
}

}  // namespace

std::vector<HostSlice> host_slices(const IssuePlan& plan, const Timeline& timeline, const Gpu& gpu) {
  std::vector<HostSlice> slices;
  slices.reserve(plan.groups.size());
  double now = timeline.host_begin.value();
  const RepeatedSpans& repeat = timeline.repeat;
  bool past = repeat.launches.times <= 1;
  for (const HostGroup& group : plan.groups) {
    // What follows the repeated launches, if without any of its own, is what the host did after their last run.
    if (!past && group.first_launch >= repeat.launches.end) {
      now = repeat.host_end.value();
      past = true;
    }
    HostSlice slice{group, now, now};
    if (group.kind == HostGroup::Kind::wait) {
      const bool after_repeat = repeat.launches.times > 1 && group.first_launch == repeat.launches.end;
      const double done = group.first_launch == 0 ? 0.0
                          : after_repeat          ? repeat.gpu_end.value()
                                                  : timeline.kernels[group.first_launch - 1].end.value();
      const double all_done = done + gpu.launch.start_latency.value();
      const auto wait = static_cast<std::size_t>(&group - plan.groups.data());
      slice.end = std::max(now, plan.streams > 1 ? end_of_wait(plan, timeline, wait, all_done) : all_done);
    } else if (group.kind == HostGroup::Kind::graph) {
      // Its launches are issued with it; those that found the queue full wait on the device's side.
      slice.end = now + group.rest;
    } else {
      if (group.launches > 0)
        slice.end = std::max(now, timeline.kernels[group.first_launch + group.launches - 1].issued.value());
      slice.end += group.rest;
    }
    now = slice.end;
    slices.push_back(slice);
  }
  return slices;
}

}  // namespace ridgeline

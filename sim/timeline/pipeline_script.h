// What one rank of a pipeline gives its streams in each action of its step, ready to be played many times.
//
// A run of kernels on the default stream is one stretch: it ends at max(begin on the stream + `busy`, begin on the host
// + `late`), which is what the recurrence over each of them gives as long as the launch queue does not fill within it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/timeline/issue_plan.h"

namespace ridgeline {

struct StretchPoint {
  enum class Kind : std::uint8_t {
    kernels,
    exchange,
    meeting,  ///< a collective of several stages on the default stream: it starts on all of them at once
    record_event,
    wait_event
  };
  Kind kind = Kind::kernels;
  GroupKind group = GroupKind::pipeline;  ///< of a meeting
  std::uint8_t stream = 0;
  bool host_waits = false;    ///< before the kernels, as Issue::wait_before
  std::int64_t wait_for = 0;  ///< of it, as Issue::wait_for
  double before_wait = 0.0;   ///< likewise
  std::uint32_t index = 0;    ///< event, or first launch
  std::uint32_t launches = 0;
  double host = 0.0;   ///< seconds of host work
  double first = 0.0;  ///< of it, up to the return of the first launch call
  double gap = 0.0;    ///< before the first kernel
  double busy = 0.0;   ///< from the start of the first kernel to the end of the last, none waiting for the host
  double late = 0.0;   ///< from the host's begin to the end of the last kernel, none waiting for one before the stretch
};

/// Points of each action; the first entry is what comes before the first action, the last what follows the last one.
struct StageScript {
  std::vector<std::vector<StretchPoint>> actions;
  Issue tail;
};

/// At most `longest` kernels a stretch. `durations` has one entry a launch of the steady step, which has stage actions.
StageScript stage_script(const StepProgram& program, const IssuePlan& plan, std::span<const double> durations,
                         double start_latency, std::uint32_t longest);

/// Launches [begin, end) of the steady step.
struct LaunchRange {
  std::uint32_t begin = 0, end = 0;
};
/// Launches of each action, with entries as StageScript has them.
std::vector<LaunchRange> launches_of_actions(const StepProgram& program);

}  // namespace ridgeline

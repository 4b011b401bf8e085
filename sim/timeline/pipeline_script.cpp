#include "sim/timeline/pipeline_script.h"

#include <algorithm>
#include <optional>

namespace ridgeline {
namespace {

/// Collects kernels into stretches.
class Stretches {
 public:
  Stretches(const StepProgram& program, const IssuePlan& plan, std::span<const double> durations, double latency,
            std::uint32_t longest)
      : plan_(plan), durations_(durations), latency_(latency), longest_(longest) {
    for (const Action& action : program.steady_step()) {
      if (action.kind != Action::Kind::launch) continue;
      const bool known = action.call != Action::kNoCall && program.trace != nullptr;
      const auto* collective =
          known ? std::get_if<Collective>(&program.trace->ops[program.trace->calls[action.call].op]) : nullptr;
      const bool joins = collective != nullptr && joins_stages(collective->group);
      joining_.push_back(joins ? std::optional(collective->group) : std::nullopt);
    }
  }

  std::vector<StretchPoint> of(std::size_t begin, std::size_t end) {
    std::vector<StretchPoint> points;
    bool open = false;
    for (std::size_t i = begin; i < end; ++i) {
      const StreamPoint& point = plan_.order[i];
      if (point.kind != StreamPoint::Kind::launch) {
        const bool record = point.kind == StreamPoint::Kind::record_event;
        StretchPoint event;
        event.kind = record ? StretchPoint::Kind::record_event : StretchPoint::Kind::wait_event;
        event.stream = point.stream;
        event.index = point.index;
        points.push_back(event);
        open = false;
        continue;
      }
      const Issue& issue = plan_.launches[point.index];
      const std::optional<GroupKind> joining = joining_[point.index];
      const bool joins = open && !joining && point.stream == points.back().stream && !issue.wait_before &&
                         points.back().launches < longest_;
      if (!joins) points.push_back(first_of(point, issue, joining));
      add(points.back(), issue, durations_[point.index]);
      open = !joining;
    }
    return points;
  }

 private:
  static StretchPoint first_of(const StreamPoint& point, const Issue& issue, std::optional<GroupKind> joining) {
    StretchPoint one;
    if (joining) {
      one.kind = *joining == GroupKind::pipeline ? StretchPoint::Kind::exchange : StretchPoint::Kind::meeting;
      one.group = *joining;
    }
    one.stream = point.stream;
    one.index = point.index;
    one.host_waits = issue.wait_before;
    one.wait_for = issue.wait_for;
    one.before_wait = issue.host_before_wait;
    one.first = issue.host;
    one.gap = issue.gap;
    return one;
  }
  void add(StretchPoint& stretch, const Issue& issue, double duration) const {
    stretch.host += issue.host;
    const double gap = stretch.launches == 0 ? 0.0 : issue.gap;
    stretch.late = std::max(stretch.launches == 0 ? 0.0 : stretch.late + gap, stretch.host + latency_) + duration;
    stretch.busy += gap + duration;
    ++stretch.launches;
  }

  const IssuePlan& plan_;
  std::span<const double> durations_;
  double latency_;
  std::uint32_t longest_;
  std::vector<std::optional<GroupKind>> joining_;  ///< group of what ties stages together, by launch
};

bool is_point(const Action& action) {
  return action.kind == Action::Kind::launch || action.kind == Action::Kind::record_event ||
         action.kind == Action::Kind::wait_event;
}

}  // namespace

StageScript stage_script(const StepProgram& program, const IssuePlan& plan, std::span<const double> durations,
                         double start_latency, std::uint32_t longest) {
  Stretches stretches(program, plan, durations, start_latency, longest);
  StageScript script;
  script.tail = plan.tail;
  const std::uint32_t end = program.steps.back().end;
  std::uint32_t action = program.steps.back().begin;
  std::size_t point = 0;
  const auto take = [&](std::uint32_t until) {
    const std::size_t begin = point;
    for (; action < until; ++action) point += is_point(program.actions[action]) ? 1 : 0;
    script.actions.push_back(stretches.of(begin, point));
  };
  take(program.stage_actions.empty() ? end : program.stage_actions.front().begin);
  for (const StepRange& one : program.stage_actions) take(one.end);
  take(end);
  return script;
}

std::vector<LaunchRange> launches_of_actions(const StepProgram& program) {
  std::vector<LaunchRange> actions;
  const StepRange steady = program.steps.back();
  std::uint32_t launch = 0, at = steady.begin;
  const auto until = [&](std::uint32_t end) {
    LaunchRange& one = actions.emplace_back();
    one.begin = launch;
    for (; at < end; ++at)
      if (program.actions[at].kind == Action::Kind::launch) ++launch;
    one.end = launch;
  };
  until(program.stage_actions.empty() ? steady.end : program.stage_actions.front().begin);
  for (const StepRange& action : program.stage_actions) until(action.end);
  until(steady.end);
  return actions;
}

}  // namespace ridgeline

#include "sim/trace/profiler/profiler_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/trace/profiler/operator_stacks.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline::trace {
namespace {

double end_of_recording(const ProfilerEvents& events) {
  double end = 0.0;
  for (const auto& event : events.operators) end = std::max(end, event.end);
  for (const auto& event : events.runtime) end = std::max(end, event.begin);
  for (const auto& event : events.annotations) end = std::max(end, event.end);
  if (events.source == ProfilerSource::nsight)  // its report may hold nothing of the host
    for (const auto& event : events.gpu) end = std::max(end, event.begin);
  return end + 1.0;
}

/// Without the profiler's own work before the first operator.
double begin_of_recording(const ProfilerEvents& events) {
  if (!events.operators.empty()) return events.operators.front().begin;
  if (events.source != ProfilerSource::nsight) return 0.0;
  const double first = events.gpu.empty() ? 0.0 : events.gpu.front().begin;
  return events.runtime.empty() ? first : std::min(first, events.runtime.front().begin);
}

std::vector<StepWindow> marked_steps(const ProfilerEvents& events) {
  std::vector<StepWindow> steps;
  for (const HostEvent& event : events.steps) steps.push_back({event.begin, event.end, events.names[event.name], true});
  if (!steps.empty()) return steps;
  for (const HostEvent& event : events.annotations) {
    const std::string& name = events.names[event.name];
    if (name.starts_with("ProfilerStep")) steps.push_back({event.begin, event.end, name, true});
  }
  return steps;
}

std::vector<StepWindow> between_optimizer_steps(const ProfilerEvents& events) {
  std::vector<StepWindow> steps;
  double begin = -1.0;
  for (const HostEvent& event : events.annotations) {
    const std::string& name = events.names[event.name];
    if (!name.starts_with("Optimizer.step#")) continue;
    if (begin >= 0) steps.push_back({begin, event.end, fmt::format("optimizer step {}", steps.size() + 2), true});
    begin = event.end;
  }
  return steps;
}

/// All steps, but of a file that is cut off those alone of which all launched kernels are there and behind which a step
/// with GPU work of its own follows: profilers write kernels in their order behind what the host did.
std::vector<bool> whole_steps(const ProfilerEvents& events, const std::vector<StepWindow>& steps,
                              const std::vector<double>& busy) {
  std::vector<bool> whole(steps.size(), true);
  if (events.cut_off.empty()) return whole;
  double last = -1.0;
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (busy[s] > 0) last = std::max(last, steps[s].begin);
  for (std::size_t s = 0; s < steps.size(); ++s)
    whole[s] = steps[s].begin < last && busy[s] > 0 && launches_without_kernel(events, steps[s]) == 0;
  return whole;
}

}  // namespace

void refuse_empty(const ProfilerEvents& events, const std::string& path) {
  if (!events.cut_off.empty() && (events.operators.empty() || events.gpu.empty()))
    throw UserError(fmt::format("{}; no step before that is whole", events.cut_off));
  if (events.operators.empty() && events.source != ProfilerSource::nsight)
    throw UserError(
        fmt::format("{}: the trace has no operators (category cpu_op): record it with "
                    "torch.profiler.ProfilerActivity.CPU",
                    path));
  if (events.gpu.empty())
    throw UserError(
        fmt::format("{}: nothing ran on a GPU in this trace: record it on one, with "
                    "torch.profiler.ProfilerActivity.CUDA",
                    path));
}

StepWindow choose_step(const ProfilerEvents& events, const std::vector<double>& issued) {
  std::vector<StepWindow> steps = marked_steps(events);
  if (steps.empty()) steps = between_optimizer_steps(events);
  std::vector<double> busy(steps.size(), 0.0);
  for (std::size_t i = 0; i < events.gpu.size(); ++i) {
    keep_budget("looking for the steps of a recording");
    for (std::size_t s = 0; s < steps.size(); ++s)
      if (steps[s].contains(issued[i])) busy[s] += events.gpu[i].end - events.gpu[i].begin;
  }
  const std::vector<bool> whole = whole_steps(events, steps, busy);
  std::vector<std::size_t> order;
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (busy[s] > 0 && whole[s]) order.push_back(s);
  if (order.empty() && !events.cut_off.empty())
    throw UserError(fmt::format("{}; no step before that is whole", events.cut_off));
  if (order.empty())
    return {begin_of_recording(events), end_of_recording(events), "the whole recording, taken as one step", false};
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return busy[a] < busy[b]; });
  StepWindow chosen = steps[order[order.size() / 2]];
  if (order.size() > 1) chosen.name += fmt::format(", the one of median GPU time of {}", order.size());
  return chosen;
}

}  // namespace ridgeline::trace

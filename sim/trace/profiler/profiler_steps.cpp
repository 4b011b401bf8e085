#include "sim/trace/profiler/profiler_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/units/budget.h"

namespace ridgeline::trace {
namespace {

double end_of_recording(const ProfilerEvents& events) {
  double end = 0.0;
  for (const auto& event : events.operators) end = std::max(end, event.end);
  for (const auto& event : events.runtime) end = std::max(end, event.begin);
  for (const auto& event : events.annotations) end = std::max(end, event.end);
  return end + 1.0;
}

/// Without the profiler's own work before the first operator.
double begin_of_recording(const ProfilerEvents& events) {
  return events.operators.empty() ? 0.0 : events.operators.front().begin;
}

std::vector<StepWindow> marked_steps(const ProfilerEvents& events) {
  std::vector<StepWindow> steps;
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

}  // namespace

StepWindow choose_step(const ProfilerEvents& events, const std::vector<double>& issued) {
  std::vector<StepWindow> steps = marked_steps(events);
  if (steps.empty()) steps = between_optimizer_steps(events);
  std::vector<double> busy(steps.size(), 0.0);
  for (std::size_t i = 0; i < events.gpu.size(); ++i) {
    keep_budget("looking for the steps of a recording");
    for (std::size_t s = 0; s < steps.size(); ++s)
      if (steps[s].contains(issued[i])) busy[s] += events.gpu[i].end - events.gpu[i].begin;
  }
  std::vector<std::size_t> order;
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (busy[s] > 0) order.push_back(s);
  if (order.empty())
    return {begin_of_recording(events), end_of_recording(events), "the whole recording, taken as one step", false};
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return busy[a] < busy[b]; });
  StepWindow chosen = steps[order[order.size() / 2]];
  if (order.size() > 1) chosen.name += fmt::format(", the one of median GPU time of {}", order.size());
  return chosen;
}

}  // namespace ridgeline::trace

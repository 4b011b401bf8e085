#include "sim/trace/profiler/operator_stacks.h"

#include <unordered_map>
#include <unordered_set>

namespace ridgeline::trace {
namespace {

/// Microseconds by which one event may seem to reach into the next that begins at its end: ends are sums of decimals.
constexpr double kTouch = 5e-4;

bool launches_kernel(const std::string& name) {
  return name.starts_with("cudaLaunchKernel") || name.starts_with("cuLaunchKernel") ||
         name.starts_with("hipLaunchKernel") || name.starts_with("hipExtModuleLaunchKernel");
}

}  // namespace

std::vector<std::size_t> parents_of(const std::vector<OperatorEvent>& operators) {
  std::vector<std::size_t> parents(operators.size(), kNoOperator);
  std::unordered_map<std::int64_t, std::vector<std::size_t>> stacks;  // by thread
  for (std::size_t i = 0; i < operators.size(); ++i) {
    auto& stack = stacks[operators[i].thread];
    while (!stack.empty() && operators[stack.back()].end <= operators[i].begin + kTouch) stack.pop_back();
    if (!stack.empty()) parents[i] = stack.back();
    stack.push_back(i);
  }
  return parents;
}

std::vector<std::size_t> operators_around(const std::vector<RuntimeEvent>& calls,
                                          const std::vector<OperatorEvent>& operators) {
  std::vector<std::size_t> around(calls.size(), kNoOperator);
  std::unordered_map<std::int64_t, std::vector<std::size_t>> stacks;
  std::size_t next = 0;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    for (; next < operators.size() && operators[next].begin <= calls[c].begin; ++next) {
      auto& stack = stacks[operators[next].thread];
      while (!stack.empty() && operators[stack.back()].end <= operators[next].begin + kTouch) stack.pop_back();
      stack.push_back(next);
    }
    auto& stack = stacks[calls[c].thread];
    while (!stack.empty() && operators[stack.back()].end <= calls[c].begin + kTouch) stack.pop_back();
    if (!stack.empty()) around[c] = stack.back();
  }
  return around;
}

std::int64_t launches_without_kernel(const ProfilerEvents& events, const StepWindow& window) {
  std::unordered_set<std::int64_t> ran;
  for (const GpuEvent& item : events.gpu) ran.insert(item.correlation);
  std::int64_t missing = 0;
  for (const RuntimeEvent& call : events.runtime)
    if (call.correlation >= 0 && window.contains(call.begin) && launches_kernel(events.names[call.name]) &&
        !ran.contains(call.correlation))
      ++missing;
  return missing;
}

}  // namespace ridgeline::trace

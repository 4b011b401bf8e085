#include "sim/trace/host_clock.h"

#include <algorithm>

namespace ridgeline::trace {
namespace {

constexpr double kPerOperator = 0.95, kPerLaunch = 2.4, kPerMemoryEvent = 0.8;  // microseconds
/// A launch call takes 4.2 us under the profiler; longer than this it waits for room in the queue, or starts CUPTI.
constexpr double kLaunchCall = 4.2, kBlockedLaunch = 20.0;

}  // namespace

bool waits_for_gpu(std::string_view call) {
  return call == "cudaStreamSynchronize" || call == "cudaDeviceSynchronize" || call == "cudaEventSynchronize" ||
         call == "cuStreamSynchronize" || call == "cuCtxSynchronize" || call == "cudaMemcpy";
}

HostClock::HostClock(const ProfilerEvents& events) {
  std::vector<std::pair<double, double>> deductions;
  for (const HostEvent& event : events.operators) deductions.emplace_back(event.begin, kPerOperator);
  for (const MemoryEvent& event : events.memory) deductions.emplace_back(event.at, kPerMemoryEvent);
  for (const HostEvent& event : events.overheads) {
    const double begin = overheads_.empty() ? event.begin : std::max(event.begin, overheads_.back().second);
    if (event.end > begin) overheads_.emplace_back(begin, event.end);
  }
  for (const RuntimeEvent& event : events.runtime) {
    double duration = event.end - event.begin;
    duration -= overhead_between(event.begin, event.end);
    double deduction = kPerLaunch;
    if (waits_for_gpu(events.names[event.name])) deduction = std::max(0.0, duration);
    else if (duration > kBlockedLaunch) deduction += duration - kLaunchCall;
    deductions.emplace_back(event.end, deduction);
  }
  std::sort(deductions.begin(), deductions.end());
  double sum = 0.0;
  for (const auto& [time, deduction] : deductions) {
    sum += deduction;
    times_.push_back(time);
    deductions_.push_back(sum);
  }
}

double HostClock::overhead_between(double begin, double end) const {
  double sum = 0.0;
  auto it =
      std::partition_point(overheads_.begin(), overheads_.end(), [&](const auto& o) { return o.second <= begin; });
  for (; it != overheads_.end() && it->first < end; ++it) sum += std::min(end, it->second) - std::max(begin, it->first);
  return sum;
}

double HostClock::between(double begin, double end) const {
  return (work_until(end) - work_until(begin) - overhead_between(begin, end)) * 1e-6;
}

double HostClock::work_until(double time) const {
  const auto after = std::upper_bound(times_.begin(), times_.end(), time) - times_.begin();
  return time - (after > 0 ? deductions_[static_cast<std::size_t>(after) - 1] : 0.0);
}

}  // namespace ridgeline::trace

#include "sim/trace/profiler/host_clock.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace ridgeline::trace {
namespace {

constexpr double kPerOperator = 0.95, kPerLaunch = 2.4, kPerMemoryEvent = 0.8;  // microseconds
/// A launch call takes 4.2 us under the profiler; longer than this it waits for room in the queue, or starts CUPTI.
constexpr double kLaunchCall = 4.2, kBlockedLaunch = 20.0;

/// Calls that do the same whatever the network, and their mean microseconds under the profiler on the default host
/// (medians of the means over fourteen recordings).
struct SameEverywhere {
  std::string_view name;
  double microseconds;
};
constexpr std::array<SameEverywhere, 4> kOperators{
    {{"aten::as_strided", 0.33}, {"aten::view", 0.94}, {"aten::empty", 2.50}, {"aten::empty_strided", 2.50}}};
constexpr std::array<SameEverywhere, 2> kCalls{{{"cudaLaunchKernel", 4.30}, {"cudaLaunchKernelExC", 4.00}}};
/// Fewer of them say little; longer ones were interrupted by something that other calls escape.
constexpr int kEnough = 100;
constexpr double kInterrupted = 40.0;

class Slowness {
 public:
  void add(const std::string& name, double microseconds, std::span<const SameEverywhere> known) {
    if (microseconds > kInterrupted) return;
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const SameEverywhere& k) { return k.name == name; });
    if (found == known.end()) return;
    ++calls_;
    here_ += microseconds;
    default_ += found->microseconds;
  }
  [[nodiscard]] double value() const { return calls_ >= kEnough && here_ > 0.0 ? here_ / default_ : 1.0; }

 private:
  int calls_ = 0;
  double here_ = 0.0, default_ = 0.0;
};

bool fills_queue(std::string_view call) {
  return call.starts_with("cudaLaunch") || call.starts_with("cuLaunch") || call.ends_with("Async") ||
         call == "cudaGraphLaunch" || call == "cuGraphLaunch";
}

}  // namespace

bool waits_for_gpu(std::string_view call) {
  return call == "cudaStreamSynchronize" || call == "cudaDeviceSynchronize" || call == "cudaEventSynchronize" ||
         call == "cuStreamSynchronize" || call == "cuCtxSynchronize" || call == "cudaMemcpy" ||
         call == "hipStreamSynchronize" || call == "hipDeviceSynchronize" || call == "hipEventSynchronize" ||
         call == "hipMemcpy" || call == "hipMemcpyWithStream";
}

HostClock::HostClock(const ProfilerEvents& events) {
  struct Deduction {
    double at, waited, profiler;
  };
  const bool kineto = events.source == ProfilerSource::kineto;  // what Nsight Systems adds is not known
  const double per_operator = kineto ? kPerOperator : 0.0, per_launch = kineto ? kPerLaunch : 0.0;
  std::vector<Deduction> deductions;
  Slowness slowness;
  for (const OperatorEvent& event : events.operators) {
    deductions.push_back({event.begin, 0.0, per_operator});
    slowness.add(events.names[event.name], event.end - event.begin, kOperators);
  }
  for (const MemoryEvent& event : events.memory) deductions.push_back({event.at, 0.0, kPerMemoryEvent});
  for (const HostEvent& event : events.overheads) {
    const double begin = overheads_.empty() ? event.begin : std::max(event.begin, overheads_.back().second);
    if (event.end > begin) overheads_.emplace_back(begin, event.end);
  }
  for (const RuntimeEvent& event : events.runtime)
    slowness.add(events.names[event.name], event.end - event.begin, kCalls);
  if (kineto) slowness_ = slowness.value();
  for (const RuntimeEvent& event : events.runtime) {
    const double duration = event.end - event.begin - overhead_between(event.begin, event.end);
    if (waits_for_gpu(events.names[event.name])) deductions.push_back({event.end, std::max(0.0, duration), 0.0});
    else if (duration > kBlockedLaunch * slowness_ && (kineto || fills_queue(events.names[event.name])))
      deductions.push_back({event.end, duration - kLaunchCall * slowness_, per_launch});
    else deductions.push_back({event.end, 0.0, per_launch});
  }
  std::sort(deductions.begin(), deductions.end(), [](const Deduction& a, const Deduction& b) { return a.at < b.at; });
  double waited = 0.0, profiler = 0.0;
  for (const Deduction& one : deductions) {
    times_.push_back(one.at);
    waits_.push_back(waited += one.waited);
    deductions_.push_back(profiler += one.profiler);
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
  return (work_until(end) - work_until(begin) - overhead_between(begin, end) / slowness_) * 1e-6;
}

double HostClock::work_until(double time) const {
  const auto after = std::upper_bound(times_.begin(), times_.end(), time) - times_.begin();
  if (after == 0) return time / slowness_;
  const auto last = static_cast<std::size_t>(after) - 1;
  return (time - waits_[last]) / slowness_ - deductions_[last];
}

}  // namespace ridgeline::trace

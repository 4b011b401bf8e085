// Host time of a profiled step as it would be without the profiler, on the host of hw/hosts/default.yaml.
//
//   T_profiled = slowness x (T + 0.95 us x operators + 2.4 us x launch calls + 0.8 us x memory events)
//
// What the profiler notes as its own overhead is taken out first, and so is the time a launch call waits for a full
// queue. `slowness` says how fast the recording's host was while it recorded: the durations of calls that do the same
// in every network (empty tensors, views, launch calls) over those in fourteen recordings on one machine, which lie
// within 8 % of each other. On rented machines it was 1.2 to 4.5; two recordings of one step whose lengths differ by up
// to 1.5 agree within 10 % (median of fourteen pairs, PyTorch 2.11 beside an H200) once it is divided out.
// The constants of the profiler were fitted by hand to four host-bound steps recorded on an NVIDIA H200 with and
// without it (PyTorch 2.11): BERT-Large fp16 and bf16, a small GPT, an MLP; in-sample error up to 3 %.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "sim/trace/profiler/profiler_events.h"

namespace ridgeline::trace {

/// Calls in which the host waits for the GPU.
bool waits_for_gpu(std::string_view runtime_call);

class HostClock {
 public:
  explicit HostClock(const ProfilerEvents& events);
  /// Seconds of host work between two times of the recording, in microseconds. Small intervals may come out negative.
  /// Of the host that hw/hosts/default.yaml describes: on the recording's own it took `slowness` times as long.
  [[nodiscard]] double between(double begin, double end) const;

  [[nodiscard]] double slowness() const { return slowness_; }

 private:
  /// Of the time between: waits are no work, on no host.
  [[nodiscard]] double overhead_between(double begin, double end) const;
  /// Without what the profiler noted as overhead taken out.
  [[nodiscard]] double work_until(double time) const;

  std::vector<std::pair<double, double>> overheads_;  ///< begin and end, none inside another
  std::vector<double> times_;                         ///< ascending
  std::vector<double> waits_;                         ///< microseconds waited, up to and with the same entry of times_
  std::vector<double> deductions_;                    ///< microseconds of the profiler's, on the default host
  double slowness_ = 1.0;
};

}  // namespace ridgeline::trace

// Host time of a profiled step as it would be without the profiler.
//
//   T_profiled = T + 0.95 us x operators + 2.4 us x launch calls + 0.8 us x memory events
//
// What the profiler notes as its own overhead is taken out, and so is the time a launch call waits for a full queue.
// The constants were fitted by hand to four host-bound steps recorded on an NVIDIA H200 with and without the profiler
// (PyTorch 2.11): BERT-Large fp16 and bf16, a small GPT, an MLP; in-sample error up to 3 %.
#pragma once

#include <utility>
#include <vector>

#include "sim/trace/profiler_events.h"

namespace ridgeline::trace {

/// Calls in which the host waits for the GPU.
bool waits_for_gpu(std::string_view runtime_call);

class HostClock {
 public:
  explicit HostClock(const ProfilerEvents& events);
  /// Seconds of host work between two times of the recording, in microseconds. Small intervals may come out negative.
  [[nodiscard]] double between(double begin, double end) const;

 private:
  [[nodiscard]] double overhead_between(double begin, double end) const;
  /// Without what the profiler noted as overhead taken out.
  [[nodiscard]] double work_until(double time) const;

  std::vector<std::pair<double, double>> overheads_;  ///< begin and end, none inside another
  std::vector<double> times_;                         ///< ascending
  std::vector<double> deductions_;                    ///< sum up to and with the same entry of times_
};

}  // namespace ridgeline::trace

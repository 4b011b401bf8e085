// A recording made ready to be replayed: our op trace, what was measured beside it, and what was not understood.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/trace/recording_info.h"

namespace ridgeline::trace {

enum class Format : std::uint8_t { op_trace, pytorch_profiler, pytorch_execution_trace };

/// One call of the recording that launched something, or would have.
struct RecordedCall {
  std::string name;
  double measured = 0.0;  ///< seconds of its kernels; 0 where none were recorded
  std::int64_t kernels = 0;
  bool understood = true;
  double beside = 0.0;  ///< seconds of its kernels in which kernels of other streams ran too
};

/// What the reader met that was not as it should be; nothing here stops a replay.
struct Defects {
  std::map<std::string, std::int64_t> counts;  ///< "events without a duration": how often
  void add(const std::string& what, std::int64_t times = 1) {
    if (times > 0) counts[what] += times;
  }
};

/// Totals of the step as the recording measured them; 0 where it did not.
struct MeasuredStep {
  std::string gpu;                                     ///< name of the recorded device
  double busy = 0.0;                                   ///< seconds in which at least one kernel ran
  double kernel_sum = 0.0;                             ///< seconds of all kernels
  double span = 0.0;                                   ///< first kernel's start to last one's end
  double step = 0.0;                                   ///< seconds of the step's annotation, profiler included
  std::int64_t kernels = 0;                            ///< kernels, memsets and copies
  std::int64_t peak_allocated = 0, peak_reserved = 0;  ///< bytes
  std::string which_step;                              ///< "ProfilerStep#3 of 5", or "the whole recording"
};

struct Replayable {
  Format format = Format::op_trace;
  Recording recording;
  std::vector<RecordedCall> recorded;
  std::vector<std::uint32_t> origin;  ///< entry of `recorded` for each of trace.calls; empty: no recorded calls
  MeasuredStep measured;
  Defects defects;
  /// How much slower than the default host the recording's was while it recorded; `recording` has the default's time.
  double host_slowness = 1.0;
  bool host_measured = false;    ///< the recording says what the host did when
  bool memory_recorded = false;  ///< allocations are the recording's own, those inside operations among them
  bool memory_known = true;      ///< there are allocations at all
};

}  // namespace ridgeline::trace

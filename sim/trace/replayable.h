// A recording made ready to be replayed: our op trace, what was measured beside it, and what was not understood.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/recording_info.h"

namespace ridgeline::trace {

enum class Format : std::uint8_t { op_trace, pytorch_profiler, pytorch_execution_trace, nsight_systems };

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

/// A GPU of a recording, over all of the recording.
struct GpuUse {
  std::int64_t device = 0;
  double busy = 0.0;  ///< seconds
  std::int64_t kernels = 0;
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
  std::vector<GpuUse> gpus;                            ///< where the recording tells of several
};

/// Kernels of a recording that compute in a number format of which not every GPU has the instructions.
struct FormatUse {
  std::string format;  ///< "fp8"
  int capability = 0;  ///< compute capability from which on GPUs have them: 89 for 8.9
  std::int64_t kernels = 0;
  double seconds = 0.0;
};

/// Kinds of what decides how long a recorded step takes.
enum class PathKind : std::uint8_t {
  kernel,
  collective,
  copy,
  host,
  launch,  ///< from the end of a launch call to the begin of its kernel on an idle GPU
  wait,    ///< from the end of what the host or a stream waited for to when it went on
};
inline constexpr std::size_t kPathKinds = 6;
std::string_view name_of(PathKind kind);

/// The chain of kernels, copies and host work of which each had to end before the next one began, back from the last
/// one of the step: a step becomes shorter if something on it does.
struct CriticalPath {
  struct Part {
    PathKind kind = PathKind::kernel;
    std::string name;
    double seconds = 0.0;
    std::int64_t count = 0;
  };
  double seconds = 0.0;     ///< all of it; 0: not known
  std::vector<Part> parts;  ///< the longest first
  [[nodiscard]] double of(PathKind kind) const {
    double sum = 0.0;
    for (const Part& part : parts) sum += part.kind == kind ? part.seconds : 0.0;
    return sum;
  }
};

struct Replayable {
  Format format = Format::op_trace;
  Recording recording;
  std::vector<RecordedCall> recorded;
  std::vector<std::uint32_t> origin;  ///< entry of `recorded` for each of trace.calls; empty: no recorded calls
  MeasuredStep measured;
  CriticalPath critical_path;  ///< of the recorded times
  std::vector<FormatUse> formats;
  Defects defects;
  /// How much slower than the default host the recording's was while it recorded; `recording` has the default's time.
  double host_slowness = 1.0;
  bool host_measured = false;    ///< the recording says what the host did when
  bool memory_recorded = false;  ///< allocations are the recording's own, those inside operations among them
  bool memory_known = true;      ///< there are allocations at all
};

}  // namespace ridgeline::trace

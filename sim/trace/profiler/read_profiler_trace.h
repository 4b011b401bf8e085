// A PyTorch profiler trace to something that can be replayed.
//
// What ran on the GPU is led back to the operators that launched it (by correlation, then by the call stack of the
// thread). The outermost operator with a rule stands for all below it; an operation without a rule is costed by its
// bytes, or where shapes are missing by what its measured time could move. The host work between launches is the
// recording's own, less the profiler's share.
#pragma once

#include <functional>
#include <string>

#include "sim/trace/aten/aten_call.h"
#include "sim/trace/profiler/profiler_events.h"
#include "sim/trace/replayable.h"

namespace ridgeline::trace {

/// Of the GPU a trace was recorded on, for operations without shapes.
struct RecordedDevice {
  double bytes_per_second = 0.0;  ///< a kernel moves at best
  double fixed_seconds = 0.0;     ///< a kernel takes at least
  /// Bytes of an operation that takes as long where the step is replayed; empty: by the two numbers above.
  std::function<std::int64_t(const std::vector<MeasuredKernel>&)> carried_bytes{};
  /// Bytes that the recording's host link moves in the time of copies over it; empty: as for other kernels.
  std::function<std::int64_t(const std::vector<MeasuredKernel>&)> link_bytes{};
  bool same_library = false;  ///< as MapContext's
  bool knows_links = false;   ///< the replay is on a cluster: collectives are operations, not times carried over
};
/// As a trace names it.
struct RecordedGpu {
  std::string name;             ///< by its driver; empty where the trace does not say
  std::int64_t memory = 0;      ///< bytes; 0 where the trace does not say
  bool hip = false;             ///< its kernels were launched through AMD's runtime
  std::int64_t sms = 0;         ///< 0 where the trace does not say
  std::int64_t capability = 0;  ///< 90 for compute capability 9.0; 0 where the trace does not say
};
using DeviceLookup = std::function<RecordedDevice(const RecordedGpu& gpu)>;

/// Throws UserError where the trace has no operators or nothing ran on a GPU. `path` stands for the file in messages.
Replayable replay_of_profile(const ProfilerEvents& events, const std::string& path, const DeviceLookup& device,
                             Defects defects);

}  // namespace ridgeline::trace

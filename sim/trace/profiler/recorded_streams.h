// Streams of a recorded step: which item ran on which, and which stream waited for which.
//
// Kineto writes waits of streams in full where the profiler was told to (enable_cuda_sync_events: category "cuda_sync",
// PyTorch 2.3 and later): the waiting stream, the stream waited for, and the call that recorded the event. Without it a
// trace holds the calls of cudaStreamWaitEvent alone, without their streams. A stream is then taken to have waited at
// such a call for all of another stream that was issued by then and had ended when the stream went on: what still ran
// cannot have been waited for. Kernels of NCCL wait so whatever the calls, for their process group lets them. Without
// such calls an item waits where it stood idle and begins as something of another stream ends.
//
// The stream with most of the kernels' time is the default one. Others wait for it at the begin of the step, and it
// waits for them at the end, unless the recording shows that they ran beside the step before or after; then it waits at
// the end for what they were given a step before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/profiler/profiler_events.h"
#include "sim/trace/profiler/profiler_steps.h"
#include "sim/workload/op_trace.h"

namespace ridgeline::trace {

/// An event that is recorded, or that a stream waits for, once the host has come to `at`.
struct StreamEvent {
  double at = 0.0;  ///< microseconds: a record comes behind the item issued then, a wait before it
  Record record;
};

struct RecordedStreams {
  std::vector<std::uint8_t> stream_of;              ///< by entry of `events.gpu`; 0 is the default one
  std::vector<std::string> names;                   ///< empty where the step has one stream
  std::vector<StreamEvent> order;                   ///< ascending; outside the step at the least and largest number
  std::map<std::size_t, std::uint32_t> host_waits;  ///< event by entry of `events.runtime`; others wait for everything
};

/// `issued` holds for each of `events.gpu` when the host issued it, `streams` the stream it counts to.
RecordedStreams recorded_streams(const ProfilerEvents& events, const std::vector<double>& issued,
                                 const std::vector<std::int64_t>& streams, const StepWindow& window);

}  // namespace ridgeline::trace

// Waits in a Chrome trace, as Kineto writes them with enable_cuda_sync_events: calls that record events, calls that
// make streams or the host wait, and a "cuda_sync" event that leads from a wait to the record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/program/step_program.h"
#include "sim/report/timeline/trace_events.h"
#include "sim/timeline/host_slices.h"
#include "sim/timeline/issue_plan.h"
#include "sim/timeline/timeline.h"

namespace ridgeline {

class StreamWaits {
 public:
  /// Numbers of the trace: stream s is `first_stream` + 4 s.
  struct Lanes {
    int process = 0, thread = 0, device = 0, first_stream = 0;
  };
  /// Records and waits stand behind the launch call before them.
  StreamWaits(const IssuePlan& plan, const Timeline& timeline, Lanes lanes);
  /// Waits of streams; nothing where the step has one.
  void write(TraceEvents& events) const;
  /// The host's wait for an event or, whichever stream it is on, for everything: `action` of the program.
  void write_host_wait(TraceEvents& events, const HostSlice& slice, const Action& action) const;

 private:
  struct Place {
    StreamPoint point;
    double at = 0.0;
    std::size_t correlation = 0;
  };
  void write_sync(TraceEvents& events, const char* name, const Place& recorded, int stream, std::size_t correlation,
                  double begin, double end) const;

  Lanes lanes_;
  bool several_streams_ = false;
  std::vector<Place> places_;
  std::map<std::uint32_t, std::size_t> recorded_;  ///< place of the last record by event
};

}  // namespace ridgeline

#include "sim/report/timeline/stream_waits.h"

namespace ridgeline {
namespace {

/// Beyond the correlations of launches.
constexpr std::size_t kStreamWaits = 1'000'000'000, kHostWaits = 2'000'000'000;
/// CUPTI's numbers of calls.
constexpr int kEventRecord = 135, kStreamWaitEvent = 147, kEventSynchronize = 137, kSynchronize = 131;

}  // namespace

StreamWaits::StreamWaits(const IssuePlan& plan, const Timeline& timeline, Lanes lanes)
    : lanes_(lanes), several_streams_(plan.streams > 1) {
  double at = timeline.host_begin.value();
  for (const StreamPoint& point : plan.order) {
    if (point.kind == StreamPoint::Kind::launch) {
      at = timeline.kernels[point.index].issued.value();
      continue;
    }
    if (point.kind == StreamPoint::Kind::record_event) recorded_[point.index] = places_.size();
    places_.push_back({point, at, kStreamWaits + places_.size()});
  }
}

void StreamWaits::write_sync(TraceEvents& events, const char* name, const Place& recorded, int stream,
                             std::size_t correlation, double begin, double end) const {
  events.slice("cuda_sync", name, lanes_.device, stream, begin, end, [&](JsonObject& a) {
    a.add("wait_on_stream", lanes_.first_stream + 4 * recorded.point.stream);
    a.add("wait_on_cuda_event_record_corr_id", recorded.correlation);
    a.add("wait_on_cuda_event_id", recorded.point.index).add("stream", stream).add("correlation", correlation);
    a.add("device", lanes_.device).add("context", 1);
  });
}

void StreamWaits::write(TraceEvents& events) const {
  std::map<std::uint32_t, const Place*> last;  // records so far, by event
  for (const Place& place : places_) {
    const bool records = place.point.kind == StreamPoint::Kind::record_event;
    if (records) last[place.point.index] = &place;
    events.slice("cuda_runtime", records ? "cudaEventRecord" : "cudaStreamWaitEvent", lanes_.process, lanes_.thread,
                 place.at, place.at, [&](JsonObject& a) {
                   a.add("cbid", records ? kEventRecord : kStreamWaitEvent).add("correlation", place.correlation);
                 });
    const auto awaited = last.find(place.point.index);
    if (records || awaited == last.end()) continue;
    write_sync(events, "Stream Wait Event", *awaited->second, lanes_.first_stream + 4 * place.point.stream,
               place.correlation, place.at, place.at);
  }
}

void StreamWaits::write_host_wait(TraceEvents& events, const HostSlice& slice, const Action& action) const {
  const bool for_event = action.kind == Action::Kind::host_waits_for_event;
  const std::size_t correlation = for_event ? kHostWaits + slice.group.action : 0;
  const char* const call = for_event          ? "cudaEventSynchronize"
                           : several_streams_ ? "cudaDeviceSynchronize"
                                              : "cudaStreamSynchronize";
  events.slice("cuda_runtime", call, lanes_.process, lanes_.thread, slice.begin, slice.end, [&](JsonObject& a) {
    a.add("cbid", for_event ? kEventSynchronize : kSynchronize).add("correlation", correlation);
  });
  const auto recorded = for_event ? recorded_.find(action.index) : recorded_.end();
  if (recorded == recorded_.end()) return;
  constexpr int kNoStream = -1;
  write_sync(events, "Event Sync", places_[recorded->second], kNoStream, correlation, slice.begin, slice.end);
}

}  // namespace ridgeline

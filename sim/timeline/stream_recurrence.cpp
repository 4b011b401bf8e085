#include "sim/timeline/stream_recurrence.h"

#include <algorithm>

namespace ridgeline {

StreamRecurrence::StreamRecurrence(std::size_t streams, std::size_t events, int queue_depth, double start_latency)
    : latency_(start_latency), streams_(std::max<std::size_t>(1, streams)), events_(events, 0.0) {
  for (Stream& stream : streams_) stream.starts.assign(static_cast<std::size_t>(std::max(1, queue_depth)), 0.0);
}

void StreamRecurrence::pass(const Issue& issue) {
  if (issue.wait_before) {
    double until = 0.0;
    if (issue.wait_for >= 0) until = events_[static_cast<std::size_t>(issue.wait_for)];
    else
      for (const Stream& stream : streams_) until = std::max(until, stream.done());
    host_ = std::max(host_ + issue.host_before_wait, until + latency_);
  }
  host_ += issue.host;
}

Recurrence::Step StreamRecurrence::step(const IssuePlan& plan, std::span<const double> durations,
                                        std::span<Recurrence::Span> spans) {
  Recurrence::Step step;
  for (const StreamPoint& point : plan.order) {
    Stream& stream = streams_[point.stream];
    switch (point.kind) {
      case StreamPoint::Kind::record_event: events_[point.index] = stream.done(); continue;
      case StreamPoint::Kind::wait_event: stream.ready = std::max(stream.ready, events_[point.index]); continue;
      case StreamPoint::Kind::launch: break;
    }
    const Issue& issue = plan.launches[point.index];
    pass(issue);
    double& oldest = stream.starts[stream.next];
    if (issue.queued) host_ = std::max(host_, oldest);
    const double free = std::max(stream.end + issue.gap, stream.ready), start = std::max(free, host_ + latency_);
    if (point.stream == 0)
      step.starved +=
          std::max(0.0, stream.ready > stream.end + issue.gap ? start - stream.ready : start - stream.end - issue.gap);
    stream.end = start + durations[point.index];
    if (issue.queued) {
      oldest = start;
      if (++stream.next == stream.starts.size()) stream.next = 0;
    }
    spans[point.index] = {host_, start, stream.end};
  }
  pass(plan.tail);
  step.repeated_host = host_;
  step.repeated_gpu = gpu();
  return step;
}

}  // namespace ridgeline

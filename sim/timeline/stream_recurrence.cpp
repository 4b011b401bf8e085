#include "sim/timeline/stream_recurrence.h"

#include <algorithm>

#include "sim/units/budget.h"

namespace ridgeline {

StreamRecurrence::StreamRecurrence(std::size_t streams, std::size_t events, int queue_depth, double start_latency)
    : latency_(start_latency), streams_(std::max<std::size_t>(1, streams)), events_(events) {
  for (Stream& stream : streams_) stream.starts.assign(static_cast<std::size_t>(std::max(1, queue_depth)), 0.0);
}

void StreamRecurrence::pass(const Issue& issue) {
  if (issue.wait_before) {
    double until = 0.0;
    if (issue.wait_for >= 0) until = events_[static_cast<std::size_t>(issue.wait_for)].at;
    else
      for (const Stream& stream : streams_) until = std::max(until, stream.done().at);
    host_ = std::max(host_ + issue.host_before_wait, until + latency_);
  }
  host_ += issue.host;
}

Recurrence::Step StreamRecurrence::step(const IssuePlan& plan, std::span<const double> durations,
                                        std::span<Recurrence::Span> spans) {
  Recurrence::Step step;
  double starved = 0.0;  // before what the plan repeats
  for (const StreamPoint& point : plan.order) {
    keep_budget_often("the timeline");
    Stream& stream = streams_[point.stream];
    switch (point.kind) {
      case StreamPoint::Kind::record_event: events_[point.index] = stream.done(); continue;
      case StreamPoint::Kind::wait_event:
        if (events_[point.index].at > stream.ready.at) stream.ready = events_[point.index];
        continue;
      case StreamPoint::Kind::launch: break;
    }
    if (point.index == plan.repeat.begin) starved = step.starved;
    if (point.index == plan.repeat.end) step.repeated_starved = step.starved - starved;
    const Issue& issue = plan.launches[point.index];
    pass(issue);
    double& oldest = stream.starts[stream.next];
    if (issue.queued) host_ = std::max(host_, oldest);
    const double own = stream.end.at + issue.gap;
    const bool waits = stream.ready.at > own;
    const double free = waits ? stream.ready.at : own, start = std::max(free, host_ + latency_);
    if (point.stream == 0)
      step.starved += waits ? start - free + std::max(0.0, stream.ready.given - own)
                            : std::max(0.0, start - stream.end.at - issue.gap);
    if (start > free) stream.end.given = start;
    else if (waits) stream.end.given = stream.ready.given;
    stream.end.at = start + durations[point.index];
    if (issue.queued) {
      oldest = start;
      if (++stream.next == stream.starts.size()) stream.next = 0;
    }
    spans[point.index] = {host_, start, stream.end.at};
  }
  pass(plan.tail);
  step.repeated_host = host_;
  step.repeated_gpu = gpu();
  return step;
}

}  // namespace ridgeline

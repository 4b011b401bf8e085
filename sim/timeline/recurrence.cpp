#include "sim/timeline/recurrence.h"

#include <algorithm>

namespace ridgeline {

Recurrence::Recurrence(int queue_depth, double start_latency)
    : latency_(start_latency), starts_(static_cast<std::size_t>(std::max(1, queue_depth)), 0.0) {}

void Recurrence::pass(const Issue& issue) {
  if (issue.wait_before) host_ = std::max(host_ + issue.host_before_wait, gpu_ + latency_);
  host_ += issue.host;
}

void Recurrence::step(const IssuePlan& plan, std::span<const double> durations, std::span<Span> spans) {
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const Issue& issue = plan.launches[i];
    pass(issue);
    if (issue.queued) host_ = std::max(host_, starts_[next_]);  // the launch `queue_depth` before must have started
    const double start = std::max(gpu_ + issue.gap, host_ + latency_);
    gpu_ = start + durations[i];
    if (issue.queued) {
      starts_[next_] = start;
      if (++next_ == starts_.size()) next_ = 0;
    }
    spans[i] = {host_, start, gpu_};
  }
  pass(plan.tail);
}

}  // namespace ridgeline

#include "sim/timeline/recurrence.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ridgeline {
namespace {

/// Relative: a run that moves on as far as the one before. Rounding of sums over a run's launches lies well below.
constexpr double kSame = 1e-11;

/// Further runs that decide every wait as the last two did, the states before and after which are given: none where
/// they differ yet.
double runs_alike(const std::vector<double>& before, const std::vector<double>& middle,
                  const std::vector<double>& after, double host_later, double gpu_later) {
  const double host = after[0] - middle[0], gpu = after[1] - middle[1];
  const double tolerance = kSame * std::max(host, gpu);
  for (std::size_t i = 0; i < after.size(); ++i) {
    const double moved = after[i] - middle[i];
    if (std::abs(moved - (middle[i] - before[i])) > tolerance) return 0.0;
    if (i > 1 && std::abs(moved - gpu) > tolerance) return 0.0;
  }
  const double drift = gpu - host;  // of the GPU's times against the host's, with every run
  if (std::abs(drift) <= tolerance) return std::numeric_limits<double>::infinity();
  return std::max(0.0, std::floor((drift > 0.0 ? host_later : gpu_later) / std::abs(drift)) - 1.0);
}

}  // namespace

Recurrence::Recurrence(int queue_depth, double start_latency, const TokenPlan* tokens)
    : latency_(start_latency), starts_(static_cast<std::size_t>(std::max(1, queue_depth)), 0.0), tokens_(tokens) {}

void Recurrence::Decisions::decide(double host, double gpu) {
  sides = sides * 0x100000001b3u + (host >= gpu ? 2 : 1);
  if (host >= gpu) host_later = std::min(host_later, host - gpu);
  else gpu_later = std::min(gpu_later, gpu - host);
}

void Recurrence::pass(const Issue& issue) {
  if (issue.wait_before) host_ = std::max(host_ + issue.host_before_wait, gpu_ + latency_);
  host_ += issue.host;
}

/// The state is kept in registers meanwhile: each launch waits for what the one before it left.
template <bool kSpans, bool kFromWaits>
void Recurrence::run(const IssuePlan& plan, std::span<const double> durations, std::span<Span> spans, std::size_t begin,
                     std::size_t end, Step& step) {
  double host = host_, gpu = gpu_, starved = kFromWaits ? leg_ : step.starved;
  double* const starts = starts_.data();
  const std::size_t depth = starts_.size();
  const double latency = latency_;
  std::size_t next = next_;
  for (std::size_t i = begin; i < end; ++i) {
    const Issue& issue = plan.launches[i];
    if (issue.wait_before) {
      host = std::max(host + issue.host_before_wait, gpu + latency);
      if constexpr (kFromWaits) {
        base_ += host;
        gpu -= host;
        step.starved += starved;
        host = starved = 0.0;
        next = 0;
        std::fill(starts_.begin(), starts_.end(), 0.0);
      }
    }
    host += issue.host;
    if (issue.queued) host = std::max(host, starts[next]);  // the launch `queue_depth` before must have started
    const double start = std::max(gpu + issue.gap, host + latency);
    if constexpr (kFromWaits) (issue.wait_before ? step.starved : starved) += std::max(0.0, start - gpu - issue.gap);
    else if constexpr (kSpans) starved += std::max(0.0, start - gpu - issue.gap);
    gpu = start + durations[i];
    if (issue.queued) {
      starts[next] = start;
      if (++next == depth) next = 0;
    }
    if constexpr (kSpans && kFromWaits) {
      const double at = offset_ + base_;
      spans[i] = {at + host, at + start, at + gpu};
    } else if constexpr (kSpans) {
      spans[i] = {host, start, gpu};
    }
  }
  host_ = host;
  gpu_ = gpu;
  next_ = next;
  (kFromWaits ? leg_ : step.starved) = starved;
}

Recurrence::Step Recurrence::step(const IssuePlan& plan, std::span<const double> durations, std::span<Span> spans) {
  Step step;
  const RepeatedLaunches& repeated = plan.repeat;
  if (plan.from_waits) {
    offset_ += std::exchange(base_, 0.0);
    const std::size_t all = plan.launches.size();
    if (spans.empty()) run<false, true>(plan, durations, spans, 0, all, step);
    else run<true, true>(plan, durations, spans, 0, all, step);
    if (tokens_ != nullptr) run_tokens(*tokens_, step);
    step.starved += std::exchange(leg_, 0.0);
  } else if (repeated.times > 1) {
    run<true>(plan, durations, spans, 0, repeated.begin, step);
    repeat(plan, durations, spans, step);
    run<true>(plan, durations, spans, repeated.end, plan.launches.size(), step);
  } else if (spans.empty()) {
    run<false>(plan, durations, spans, 0, plan.launches.size(), step);
  } else {
    run<true>(plan, durations, spans, 0, plan.launches.size(), step);
  }
  pass(plan.tail);
  return step;
}

/// As run() of the repeated launches, without spans.
Recurrence::Decisions Recurrence::run_deciding(const IssuePlan& plan, std::span<const double> durations,
                                               double& starved) {
  Decisions decisions;
  for (std::size_t i = plan.repeat.begin; i < plan.repeat.end; ++i) {
    const Issue& issue = plan.launches[i];
    if (issue.wait_before) decisions.decide(host_ + issue.host_before_wait, gpu_ + latency_);
    pass(issue);
    if (issue.queued) {
      decisions.decide(host_, starts_[next_]);
      host_ = std::max(host_, starts_[next_]);
    }
    decisions.decide(host_ + latency_, gpu_ + issue.gap);
    const double start = std::max(gpu_ + issue.gap, host_ + latency_);
    starved += std::max(0.0, start - gpu_ - issue.gap);
    gpu_ = start + durations[i];
    if (issue.queued) {
      starts_[next_] = start;
      if (++next_ == starts_.size()) next_ = 0;
    }
  }
  return decisions;
}

void Recurrence::shift(double by) {
  host_ += by;
  gpu_ += by;
  for (double& start : starts_) start += by;
}

void Recurrence::keep_state(State& state) const {
  state.assign({host_, gpu_});
  const auto oldest = starts_.begin() + static_cast<std::ptrdiff_t>(next_);
  state.insert(state.end(), oldest, starts_.end());
  state.insert(state.end(), starts_.begin(), oldest);
}

void Recurrence::advance(const State& from, const State& to, double runs) {
  host_ += runs * (to[0] - from[0]);
  gpu_ += runs * (to[1] - from[1]);
  if (to.size() == 2) return;
  for (std::size_t i = 0; i < starts_.size(); ++i)
    starts_[(next_ + i) % starts_.size()] += runs * (to[i + 2] - from[i + 2]);
}

void Recurrence::repeat(const IssuePlan& plan, std::span<const double> durations, std::span<Span> spans, Step& step) {
  const RepeatedLaunches& repeated = plan.repeat;
  // Small times have small rounding errors.
  const double base = gpu_;
  shift(-base);
  run<true>(plan, durations, spans, repeated.begin, repeated.end, step);
  for (std::size_t i = repeated.begin; i < repeated.end; ++i)
    spans[i] = {spans[i].issued + base, spans[i].start + base, spans[i].end + base};
  // What never queues has no state in the queue.
  const bool queues = std::any_of(plan.launches.begin() + static_cast<std::ptrdiff_t>(repeated.begin),
                                  plan.launches.begin() + static_cast<std::ptrdiff_t>(repeated.end),
                                  [](const Issue& issue) { return issue.queued; });
  const auto keep = [&](State& state) {
    if (queues) keep_state(state);
    else state.assign({host_, gpu_});
  };
  State before, middle, after;
  std::uint64_t sides = 0;
  keep(after);
  for (std::int64_t left = repeated.times - 1; left > 0; --left) {
    std::swap(before, middle);
    std::swap(middle, after);
    double starved = 0.0;
    const Decisions decisions = run_deciding(plan, durations, starved);
    step.starved += starved;
    keep(after);
    if (decisions.sides == std::exchange(sides, decisions.sides) && before.size() == after.size()) {
      const double alike = runs_alike(before, middle, after, decisions.host_later, decisions.gpu_later);
      const double skipped = std::min(alike, static_cast<double>(left - 1));
      if (skipped >= 1.0) {
        advance(middle, after, skipped);
        step.starved += skipped * starved;
        left -= static_cast<std::int64_t>(skipped);
        keep(after);
        before.clear();
        middle.clear();
      }
    }
  }
  shift(base);
  step.repeated_host = host_;
  step.repeated_gpu = gpu_;
}

}  // namespace ridgeline

#include "sim/timeline/token_play.h"

#include <algorithm>

#include "sim/timeline/recurrence.h"
#include "sim/units/budget.h"

namespace ridgeline {

TokenPlan::TokenPlan(const TokenTimes& made_of, const Gpu& gpu, const Host& host) : times(made_of) {
  std::vector<double> of_shape;
  for (const TokenTimes::Shape& shape : times.shapes) {
    double& total = of_shape.emplace_back();
    for (const Issue& issue : issues.emplace_back(plan_token(shape.program, gpu, host)))
      total += issue.host + issue.host_before_wait;
  }
  for (const TokenTimes::Token& token : times.tokens) host_total += of_shape[token.shape];
}

namespace {

/// Two numbers at once; four tokens are two pairs, whose launches the processor works on beside each other.
using Two __attribute__((vector_size(16))) = double;
constexpr std::size_t kPairs = 2, kBeside = 2 * kPairs;
inline Two larger(Two a, Two b) { return a > b ? a : b; }

/// Tokens of one shape that begin with a wait of the host, behind which nothing of the one before matters: the first
/// launch starts when the host has issued it.
class TokensBeside {
 public:
  TokensBeside(double latency, std::size_t depth) : latency_(latency), starts_(kPairs * depth) {}
  static bool may_run(std::span<const Issue> issues, double latency) {
    return !issues.empty() && issues.front().wait_before && issues.front().gap <= issues.front().host + 2.0 * latency;
  }
  struct Wait {
    Two moved[kPairs], starved[kPairs], first[kPairs];
  };

  /// `durations`: kPairs of each kernel.
  void run(std::span<const Issue> issues, std::span<const std::uint32_t> kernel_of, std::span<const Two> durations) {
    waits.clear();
    const Two latency{latency_, latency_}, none{};
    const std::size_t depth = starts_.size() / kPairs;
    Two h[kPairs] = {}, g[kPairs] = {}, l[kPairs] = {};
    next = 0;
    std::fill(starts_.begin(), starts_.end(), none);
    bool fresh = false;  // the first launch behind a wait
    for (std::size_t i = 0; i < issues.size(); ++i) {
      const Issue& issue = issues[i];
      const Two own{issue.host, issue.host}, gap{issue.gap, issue.gap};
      if (issue.wait_before && i > 0) {
        const Two before{issue.host_before_wait, issue.host_before_wait};
        Wait& wait = waits.emplace_back();
        for (std::size_t p = 0; p < kPairs; ++p) {
          wait.moved[p] = larger(h[p] + before, g[p] + latency);
          wait.starved[p] = l[p];
          g[p] -= wait.moved[p];
          h[p] = l[p] = none;
        }
        next = 0;
        fresh = true;
        std::fill(starts_.begin(), starts_.end(), none);
      }
      Two* const oldest = &starts_[kPairs * next];
      const Two* const duration = &durations[kPairs * kernel_of[i]];
      for (std::size_t p = 0; p < kPairs; ++p) {
        h[p] += own;
        if (issue.queued) h[p] = larger(h[p], oldest[p]);
        const Two issued = h[p] + latency, start = i == 0 ? issued : larger(g[p] + gap, issued);
        if (fresh) waits.back().first[p] = larger(none, start - g[p] - gap);
        else if (i > 0) l[p] += larger(none, start - g[p] - gap);
        g[p] = start + duration[p];
        if (issue.queued) oldest[p] = start;
      }
      if (issue.queued && ++next == depth) next = 0;
      fresh = false;
    }
    for (std::size_t p = 0; p < kPairs; ++p) host[p] = h[p], gpu[p] = g[p], leg[p] = l[p];
  }
  /// Starts of the queue as a token leaves it.
  void starts_of(std::size_t token, std::vector<double>& out) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = starts_[kPairs * i + token / 2][token % 2];
  }

  std::vector<Wait> waits;  ///< but for those with which the tokens begin
  Two host[kPairs] = {}, gpu[kPairs] = {}, leg[kPairs] = {};
  std::size_t next = 0;

 private:
  double latency_;
  std::vector<Two> starts_;
};

}  // namespace

void Recurrence::run_tokens(const TokenPlan& plan, Step& step) {
  const Local before{host_, gpu_, leg_, next_, starts_};
  const std::vector<TokenTimes::Token>& tokens = plan.times.tokens;
  const std::span<const Issue> first = tokens.empty() ? std::span<const Issue>{} : plan.issues[tokens.front().shape];
  if (known_.made && TokensBeside::may_run(first, latency_)) {
    known_.begins.front().gpu = gpu_;
    known_.waits.front() = wait_of_token(first.front());
  } else if (!known_.made || !(known_.before == before)) {
    known_ = {};
    known_.before = before;
    for (std::size_t token = 0; token < tokens.size();) {
      keep_budget("the timeline");
      std::size_t end = token + 1;
      while (end < tokens.size() && tokens[end].shape == tokens[token].shape) ++end;
      run_alike(plan, token, end);
      token = end;
    }
    known_.after = {host_, gpu_, leg_, next_, starts_};
    known_.made = true;
  }
  std::size_t token = 0;
  for (std::size_t wait = 0; wait <= known_.waits.size(); ++wait) {
    for (; token < known_.begins.size() && known_.begins[token].waits == wait; ++token)
      step.token_begins.push_back(offset_ + (base_ + known_.begins[token].gpu));
    if (wait == known_.waits.size()) break;
    base_ += known_.waits[wait].moved;
    step.starved += known_.waits[wait].starved;
    step.starved += known_.waits[wait].first;
  }
  host_ = known_.after.host;
  gpu_ = known_.after.gpu;
  leg_ = known_.after.leg;
  next_ = known_.after.next;
  starts_ = known_.after.starts;
  step.token_begins.push_back(gpu());
}

/// The wait that a token begins with, behind which nothing of what was before it matters.
Recurrence::KnownTokens::Wait Recurrence::wait_of_token(const Issue& first) const {
  const double moved = std::max(host_ + first.host_before_wait, gpu_ + latency_), gpu = gpu_ - moved;
  return {moved, leg_, std::max(0.0, first.host + latency_ - gpu - first.gap)};
}

/// Tokens [begin, end), which are of one shape.
void Recurrence::run_alike(const TokenPlan& plan, std::size_t begin, std::size_t end) {
  const TokenTimes& times = plan.times;
  const std::uint32_t number = times.tokens[begin].shape;
  const TokenTimes::Shape& shape = times.shapes[number];
  const std::span<const Issue> issues = plan.issues[number];
  const auto duration = [&](std::size_t token, std::size_t kernel) {
    return plan.durations[times.held[times.tokens[token].held + kernel]];
  };
  if (!TokensBeside::may_run(issues, latency_)) {
    std::vector<double> durations(shape.kernels);
    for (std::size_t token = begin; token < end; ++token) {
      for (std::size_t kernel = 0; kernel < shape.kernels; ++kernel) durations[kernel] = duration(token, kernel);
      known_.begins.push_back({known_.waits.size(), gpu_});
      run_token(issues, shape.kernel_of, durations);
    }
    return;
  }
  TokensBeside beside(latency_, starts_.size());
  std::vector<Two> durations(kPairs * shape.kernels);
  const Issue& first = issues.front();
  for (std::size_t token = begin; token < end; token += kBeside) {
    const std::size_t count = std::min(kBeside, end - token);
    for (std::size_t kernel = 0; kernel < shape.kernels; ++kernel)
      for (std::size_t i = 0; i < kBeside; ++i)
        durations[kPairs * kernel + i / 2][i % 2] = duration(token + std::min(i, count - 1), kernel);
    beside.run(issues, shape.kernel_of, durations);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t p = i / 2, k = i % 2;
      known_.begins.push_back({known_.waits.size(), gpu_});
      known_.waits.push_back(wait_of_token(first));
      for (const TokensBeside::Wait& wait : beside.waits)
        known_.waits.push_back({wait.moved[p][k], wait.starved[p][k], wait.first[p][k]});
      host_ = beside.host[p][k];
      gpu_ = beside.gpu[p][k];
      leg_ = beside.leg[p][k];
    }
    next_ = beside.next;
    if (token + kBeside >= end) beside.starts_of(count - 1, starts_);
  }
}

/// Does what run() does for its launches, but that waits are noted and not yet counted.
void Recurrence::run_token(std::span<const Issue> issues, std::span<const std::uint32_t> kernel_of,
                           std::span<const double> durations) {
  double host = host_, gpu = gpu_, leg = leg_;
  double* const starts = starts_.data();
  const std::size_t depth = starts_.size();
  const double latency = latency_;
  std::size_t next = next_;
  for (std::size_t i = 0; i < issues.size(); ++i) {
    const Issue& issue = issues[i];
    if (issue.wait_before) {
      host = std::max(host + issue.host_before_wait, gpu + latency);
      known_.waits.push_back({host, leg, 0.0});
      gpu -= host;
      host = leg = 0.0;
      next = 0;
      std::fill(starts_.begin(), starts_.end(), 0.0);
    }
    host += issue.host;
    if (issue.queued) host = std::max(host, starts[next]);
    const double start = std::max(gpu + issue.gap, host + latency), starved = std::max(0.0, start - gpu - issue.gap);
    if (issue.wait_before) known_.waits.back().first = starved;
    else leg += starved;
    gpu = start + durations[kernel_of[i]];
    if (issue.queued) {
      starts[next] = start;
      if (++next == depth) next = 0;
    }
  }
  host_ = host;
  gpu_ = gpu;
  leg_ = leg;
  next_ = next;
}

}  // namespace ridgeline

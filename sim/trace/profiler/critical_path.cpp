#include "sim/trace/profiler/critical_path.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "sim/trace/profiler/host_clock.h"
#include "sim/trace/profiler/recorded_collectives.h"
#include "sim/units/budget.h"

namespace ridgeline::trace {
namespace {

constexpr std::size_t kNoItem = std::numeric_limits<std::size_t>::max();
/// Microseconds: ends are sums of decimals; a start behind a finished item or event takes a few; a call that takes
/// longer than kLongCall is told by its name.
constexpr double kEnds = 0.5, kStartsBehind = 8.0, kLongCall = 20.0;
constexpr const char* kPython = "Python and what no operator shows";

class PathWalk {
 public:
  PathWalk(const ProfilerEvents& events, const std::vector<std::size_t>& items, const std::vector<double>& issued,
           const StepWindow& window)
      : events_(events), issued_(issued), window_(window) {
    before_.assign(events.gpu.size(), kNoItem);
    in_step_.assign(events.gpu.size(), false);
    for (const std::size_t g : items) in_step_[g] = true;
    std::unordered_map<std::int64_t, std::size_t> last;  // by stream
    for (std::size_t g = 0; g < events.gpu.size(); ++g) {
      const auto [place, is_new] = last.try_emplace(events.gpu[g].stream, g);
      if (!is_new) before_[g] = std::exchange(place->second, g);
    }
    by_end_ = items;
    std::stable_sort(by_end_.begin(), by_end_.end(),
                     [&](std::size_t a, std::size_t b) { return events.gpu[a].end < events.gpu[b].end; });
    for (std::size_t c = 0; c < events.runtime.size(); ++c)
      if (events.runtime[c].correlation >= 0) calls_.emplace(events.runtime[c].correlation, c);
    find_waits();
    find_outermost();
  }

  CriticalPath walk() {
    CriticalPath path;
    if (by_end_.empty()) return path;
    std::size_t item = by_end_.back();
    const double end = events_.gpu[item].end;
    double at = end;
    for (std::size_t steps = 0; item != kNoItem && steps <= 2 * events_.gpu.size(); ++steps) {
      keep_budget_often("following the critical path");
      item = back(item, at);
    }
    path.seconds = (end - at) * 1e-6;
    for (auto& [key, sum] : parts_) path.parts.push_back({key.first, key.second, sum.first * 1e-6, sum.second});
    std::stable_sort(path.parts.begin(), path.parts.end(),
                     [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    return path;
  }

 private:
  void add(PathKind kind, std::string_view name, double microseconds) {
    if (microseconds <= 0.0) return;
    auto& [sum, count] = parts_[{kind, std::string(name)}];
    sum += microseconds;
    ++count;
  }

  /// Waits of the host for the GPU, by their end.
  void find_waits() {
    for (std::size_t c = 0; c < events_.runtime.size(); ++c)
      if (waits_for_gpu(events_.names[events_.runtime[c].name])) waits_.push_back(c);
    std::stable_sort(waits_.begin(), waits_.end(),
                     [&](std::size_t a, std::size_t b) { return events_.runtime[a].end < events_.runtime[b].end; });
  }

  /// Outermost operators of all threads and long calls, none inside another, by their begin.
  void find_outermost() {
    double end = -std::numeric_limits<double>::infinity();
    std::vector<Span> spans;
    for (const OperatorEvent& op : events_.operators) spans.push_back({op.begin, op.end, op.name});
    for (const RuntimeEvent& call : events_.runtime)
      if (call.end - call.begin > kLongCall && !waits_for_gpu(events_.names[call.name]))
        long_calls_.push_back({call.begin, call.end, call.name});
    for (const Span& span : spans) {
      if (span.end <= end) continue;
      outermost_.push_back({std::max(span.begin, end), span.end, span.name});
      end = span.end;
    }
  }

  struct Span {
    double begin = 0.0, end = 0.0;
    std::uint32_t name = 0;
  };

  /// Host time of [begin, end) by what the host did.
  void add_host(double begin, double end) {
    double named = 0.0;
    const auto take = [&](const std::vector<Span>& spans, double from, double to) {
      double taken = 0.0;
      auto it = std::partition_point(spans.begin(), spans.end(), [&](const Span& s) { return s.begin < from; });
      while (it != spans.begin() && std::prev(it)->end > from) --it;
      for (; it != spans.end() && it->begin < to; ++it) {
        const double both = std::min(to, it->end) - std::max(from, it->begin);
        if (both <= 0.0) continue;
        add(PathKind::host, events_.names[it->name], both);
        taken += both;
      }
      return taken;
    };
    named += take(outermost_, begin, end);
    if (outermost_.empty()) named += take(long_calls_, begin, end);
    add(PathKind::host, events_.operators.empty() ? "host, calls aside" : kPython, end - begin - named);
  }

  [[nodiscard]] PathKind kind_of(std::size_t g) const {
    if (events_.gpu[g].kind != GpuEvent::Kind::kernel) return PathKind::copy;
    return is_collective_kernel(events_.names[events_.gpu[g].name]) ? PathKind::collective : PathKind::kernel;
  }

  /// The item of another stream that ended last at or before `by`, where it ended after `after`.
  [[nodiscard]] std::size_t ended_last(double after, double by, std::size_t other_than) const {
    auto it = std::partition_point(by_end_.begin(), by_end_.end(),
                                   [&](std::size_t g) { return events_.gpu[g].end <= by + kEnds; });
    while (it != by_end_.begin()) {
      const std::size_t g = *--it;
      if (events_.gpu[g].end <= after) break;
      if (other_than == kNoItem || events_.gpu[g].stream != events_.gpu[other_than].stream) return g;
    }
    return kNoItem;
  }

  /// Adds item `g` up to `at` and what delayed its begin; returns the item before it on the path, kNoItem at its begin.
  std::size_t back(std::size_t g, double& at) {
    const GpuEvent& item = events_.gpu[g];
    add(kind_of(g), events_.names[item.name], at - std::min(at, item.begin));
    at = std::min(at, item.begin);
    const auto call = calls_.find(item.correlation);
    const double issued = issued_[g];
    const double called = call == calls_.end() ? issued : std::min(events_.runtime[call->second].end, item.begin);
    const std::size_t before = before_[g];
    const double previous = before == kNoItem ? -std::numeric_limits<double>::infinity() : events_.gpu[before].end;
    const double ready = std::max(previous, called);
    const std::size_t other = ended_last(ready + kEnds, at, g);
    if (other != kNoItem && at - ready > kStartsBehind && other < g) {  // its stream waited for another one
      add(PathKind::wait, "start behind another stream", at - events_.gpu[other].end);
      at = std::min(at, events_.gpu[other].end);
      return other;
    }
    if (before != kNoItem && previous >= called) {
      if (!in_step_[before]) return kNoItem;  // the step before still ran: nothing of this one delays it
      add(PathKind::launch, "gaps between kernels", at - previous);
      at = std::min(at, previous);
      return before;
    }
    if ((call == calls_.end() && before == kNoItem) || issued < window_.begin) return kNoItem;
    add(PathKind::launch, "launch on an idle GPU", at - called);
    at = std::min(at, called);
    return host_back(at);
  }

  /// Adds the host's work before `at` back to its last wait for the GPU; returns the item that this one waited for.
  std::size_t host_back(double& at) {
    auto wait = std::partition_point(waits_.begin(), waits_.end(),
                                     [&](std::size_t c) { return events_.runtime[c].end <= at + kEnds; });
    while (wait != waits_.begin()) {
      const RuntimeEvent& call = events_.runtime[*--wait];
      if (call.end <= window_.begin) break;
      const std::size_t awaited = ended_last(call.begin, call.end, kNoItem);
      if (awaited == kNoItem || events_.gpu[awaited].end >= at) continue;  // nothing ended while it waited
      add_host(call.end, at);
      add(PathKind::wait, events_.names[call.name], call.end - events_.gpu[awaited].end);
      at = std::min(at, events_.gpu[awaited].end);
      return awaited;
    }
    add_host(std::min(at, window_.begin), at);
    at = std::min(at, window_.begin);
    return kNoItem;
  }

  const ProfilerEvents& events_;
  const std::vector<double>& issued_;
  const StepWindow& window_;
  std::vector<std::size_t> by_end_, before_, waits_;
  std::vector<bool> in_step_;
  std::vector<Span> outermost_, long_calls_;
  std::unordered_map<std::int64_t, std::size_t> calls_;
  std::map<std::pair<PathKind, std::string>, std::pair<double, std::int64_t>> parts_;
};

}  // namespace

std::string_view name_of(PathKind kind) {
  static constexpr std::array<std::string_view, kPathKinds> kNames{"kernel", "collective", "copy",
                                                                   "host",   "launch",     "wait"};
  return kNames[static_cast<std::size_t>(kind)];
}

CriticalPath critical_path(const ProfilerEvents& events, const std::vector<std::size_t>& items,
                           const std::vector<double>& issued, const StepWindow& window) {
  return PathWalk(events, items, issued, window).walk();
}

}  // namespace ridgeline::trace

#include "sim/trace/profiler/recorded_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/trace/profiler/operator_stacks.h"
#include "sim/trace/profiler/recorded_collectives.h"

namespace ridgeline::trace {
namespace {

constexpr double kNever = std::numeric_limits<double>::max();

/// The stream with most of the kernels' time, those of collectives aside.
std::int64_t main_stream(const ProfilerEvents& events, const std::vector<std::int64_t>& streams) {
  std::map<std::int64_t, std::pair<double, double>> busy;  // of kernels, then of everything
  for (std::size_t g = 0; g < events.gpu.size(); ++g) {
    const GpuEvent& item = events.gpu[g];
    if (is_collective_kernel(events.names[item.name])) continue;
    auto& [kernels, all] = busy[streams[g]];
    if (item.kind == GpuEvent::Kind::kernel) kernels += item.end - item.begin;
    all += item.end - item.begin;
  }
  const auto most =
      std::max_element(busy.begin(), busy.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == busy.end() ? 0 : most->first;
}

/// When streams were told to wait, other than by the calls of collectives themselves; ascending.
std::vector<double> waits_of_streams(const ProfilerEvents& events) {
  const std::vector<std::size_t> around = operators_around(events.runtime, events.operators);
  const std::vector<std::size_t> parents = parents_of(events.operators);
  std::vector<double> waits;
  for (std::size_t i = 0; i < events.runtime.size(); ++i) {
    const std::string& call = events.names[events.runtime[i].name];
    if (call != "cudaStreamWaitEvent" && call != "cuStreamWaitEvent" && call != "hipStreamWaitEvent") continue;
    bool of_collective = false;
    for (std::size_t op = around[i]; op != kNoOperator && !of_collective; op = parents[op]) {
      const std::string& name = events.names[events.operators[op].name];
      of_collective = name.starts_with("c10d::") || name.starts_with("_c10d_functional::") ||
                      name == "record_param_comms" || name.starts_with("nccl:");
    }
    if (!of_collective) waits.push_back(events.runtime[i].begin);
  }
  std::sort(waits.begin(), waits.end());
  return waits;
}

/// The items of one stream in the step, in the order in which they were issued.
struct Lane {
  std::int64_t stream = 0;
  std::vector<std::size_t> items;
  std::vector<double> issued, done;  ///< `done`: when an item and all before it had ended
  bool only_collectives = true;

  [[nodiscard]] std::size_t issued_before(double at) const {
    return static_cast<std::size_t>(std::lower_bound(issued.begin(), issued.end(), at) - issued.begin());
  }
  [[nodiscard]] std::size_t done_by(double at) const {
    return static_cast<std::size_t>(std::upper_bound(done.begin(), done.end(), at) - done.begin());
  }
};

class StreamReader {
 public:
  StreamReader(const ProfilerEvents& events, const std::vector<double>& issued,
               const std::vector<std::int64_t>& streams, const StepWindow& window)
      : events_(events), issued_(issued), streams_(streams), window_(window) {}

  RecordedStreams read() {
    make_lanes();
    if (lanes_.size() < 2) return std::move(result_);
    for (std::size_t i = 0; i < events_.runtime.size(); ++i)
      if (events_.runtime[i].correlation >= 0) calls_.emplace(events_.runtime[i].correlation, i);
    const bool told = std::any_of(events_.syncs.begin(), events_.syncs.end(),
                                  [](const SyncEvent& sync) { return sync.kind == SyncEvent::Kind::stream_waits; });
    if (told) read_waits();
    else infer_waits();
    find_host_waits();
    join_streams();
    std::stable_sort(result_.order.begin(), result_.order.end(), comes_before);
    return std::move(result_);
  }

 private:
  /// At an item that waits and that another stream waits for its wait comes first: the record is behind it. Outside the
  /// step the order is as given.
  static bool comes_before(const StreamEvent& a, const StreamEvent& b) {
    if (a.at != b.at) return a.at < b.at;
    const bool inside = a.at > -kNever && a.at < kNever;
    return inside && a.record.kind == Record::Kind::wait_event && b.record.kind != Record::Kind::wait_event;
  }

  void make_lanes() {
    constexpr std::size_t kMost = 255;  // streams beyond it share one
    result_.stream_of.assign(events_.gpu.size(), 0);
    lanes_.emplace_back().stream = main_stream(events_, streams_);
    std::vector<std::size_t> order(events_.gpu.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return issued_[a] < issued_[b]; });
    for (const std::size_t g : order) {
      if (!window_.contains(issued_[g])) continue;
      std::size_t number = lane_of(streams_[g]);
      if (number == lanes_.size() && number < kMost) lanes_.emplace_back().stream = streams_[g];
      number = std::min(number, lanes_.size() - 1);
      Lane& lane = lanes_[number];
      lane.items.push_back(g);
      lane.issued.push_back(issued_[g]);
      lane.done.push_back(std::max(lane.done.empty() ? 0.0 : lane.done.back(), events_.gpu[g].end));
      lane.only_collectives = lane.only_collectives && is_collective(g);
      result_.stream_of[g] = static_cast<std::uint8_t>(number);
    }
    if (lanes_.size() < 2) return;
    result_.names = {"default"};
    for (std::size_t s = 1; s < lanes_.size(); ++s)
      result_.names.push_back(lanes_[s].only_collectives
                                  ? s == 1 ? "collectives" : fmt::format("collectives {}", lanes_[s].stream)
                                  : fmt::format("stream {}", lanes_[s].stream));
  }
  /// One behind the last where the stream has nothing in the step.
  [[nodiscard]] std::size_t lane_of(std::int64_t stream) const {
    return static_cast<std::size_t>(
        std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& lane) { return lane.stream == stream; }) -
        lanes_.begin());
  }
  [[nodiscard]] bool is_collective(std::size_t g) const {
    return is_collective_kernel(events_.names[events_.gpu[g].name]);
  }

  static StreamEvent event(double at, Record::Kind kind, std::size_t stream, std::uint32_t number) {
    return {at, {kind, HostClass::other, static_cast<std::uint8_t>(stream), number}};
  }
  /// The event of the first `count` items of a stream.
  std::uint32_t record(std::size_t lane, std::size_t count) {
    result_.order.push_back(event(lanes_[lane].issued[count - 1], Record::Kind::record_event, lane, next_));
    return next_++;
  }
  void wait(std::size_t waiting, double at, std::size_t lane, std::size_t count) {
    if (count == 0 || lanes_[lane].issued[count - 1] >= at) return;
    const std::uint32_t awaited = record(lane, count);
    result_.order.push_back(event(at, Record::Kind::wait_event, waiting, awaited));
  }
  /// How much of which stream had been issued when the event was recorded that a call waits for; nothing where it was
  /// recorded before the step.
  [[nodiscard]] std::optional<std::pair<std::size_t, std::size_t>> awaited(const SyncEvent& sync, double at) const {
    const std::size_t lane = lane_of(sync.wait_on_stream);
    if (lane == lanes_.size()) return std::nullopt;
    const auto recorded = calls_.find(sync.record_correlation);
    const double by = recorded == calls_.end() ? at : events_.runtime[recorded->second].begin;
    const std::size_t count = lanes_[lane].issued_before(by);
    return count == 0 ? std::nullopt : std::optional(std::pair(lane, count));
  }

  void read_waits() {
    for (const SyncEvent& sync : events_.syncs) {
      if (sync.kind != SyncEvent::Kind::stream_waits) continue;
      const auto call = calls_.find(sync.correlation);
      const double at = call == calls_.end() ? sync.begin : events_.runtime[call->second].begin;
      const std::size_t waiting = lane_of(sync.stream);
      if (waiting == lanes_.size() || !window_.contains(at)) continue;
      if (const auto all = awaited(sync, at); all && all->first != waiting) wait(waiting, at, all->first, all->second);
    }
  }

  void infer_waits() {
    constexpr double kIdle = 5.0, kBehind = 5.0;  // microseconds: several times what a start behind an event takes
    const std::vector<double> waits = waits_of_streams(events_);
    for (std::size_t s = 0; s < lanes_.size(); ++s) {
      std::vector<std::size_t> waited(lanes_.size(), 0);
      const Lane& lane = lanes_[s];
      for (std::size_t i = 0; i < lane.items.size(); ++i) {
        const GpuEvent& item = events_.gpu[lane.items[i]];
        const double since = i > 0 ? lane.issued[i - 1] : window_.begin, until = lane.issued[i];
        double at = until;
        bool must_touch = false;
        if (s == 0 || !is_collective(lane.items[i])) {
          const auto after = std::upper_bound(waits.begin(), waits.end(), until);
          const bool called = after != waits.begin() && *std::prev(after) > since;
          must_touch = waits.empty() && item.begin - std::max(until, i > 0 ? lane.done[i - 1] : 0.0) > kIdle;
          if (!called && !must_touch) continue;
          if (called) at = *std::prev(after);
        }
        for (std::size_t other = 0; other < lanes_.size(); ++other) {
          if (other == s) continue;
          const std::size_t count = std::min(lanes_[other].issued_before(at), lanes_[other].done_by(item.begin));
          if (count <= waited[other] || (must_touch && lanes_[other].done[count - 1] < item.begin - kBehind)) continue;
          wait(s, at, other, waited[other] = count);
        }
      }
    }
  }

  /// Waits of the host that are no waits for everything.
  void find_host_waits() {
    std::map<std::int64_t, const SyncEvent*> told;
    for (const SyncEvent& sync : events_.syncs) told[sync.correlation] = &sync;
    for (std::size_t i = 0; i < events_.runtime.size(); ++i) {
      const RuntimeEvent& call = events_.runtime[i];
      const std::string& name = events_.names[call.name];
      if (!window_.contains(call.begin)) continue;
      if (!name.ends_with("StreamSynchronize") && !name.ends_with("EventSynchronize")) continue;
      const auto sync = told.find(call.correlation);
      if (const auto of = sync == told.end() ? inferred(call) : told_by(*sync->second, call))
        result_.host_waits.emplace(i, record(of->first, of->second));
    }
  }
  using Items = std::optional<std::pair<std::size_t, std::size_t>>;
  [[nodiscard]] Items told_by(const SyncEvent& sync, const RuntimeEvent& call) const {
    if (sync.kind == SyncEvent::Kind::host_waits_for_event) return awaited(sync, call.begin);
    const std::size_t lane = lane_of(sync.stream);
    if (sync.kind != SyncEvent::Kind::host_waits_for_stream || lane == lanes_.size()) return std::nullopt;
    const std::size_t count = lanes_[lane].issued_before(call.begin);
    return count == 0 ? std::nullopt : std::optional(std::pair(lane, count));
  }
  /// The host waited for the stream that had ended last, and for none that still ran when the call returned. The
  /// result is empty where all had ended.
  [[nodiscard]] Items inferred(const RuntimeEvent& call) const {
    bool all = true;
    std::pair<std::size_t, std::size_t> last{0, 0};
    double ended = -kNever;
    for (std::size_t l = 0; l < lanes_.size(); ++l) {
      const std::size_t issued = lanes_[l].issued_before(call.begin);
      const std::size_t count = std::min(issued, lanes_[l].done_by(call.end));
      all = all && count == issued;
      if (count == 0 || lanes_[l].done[count - 1] <= ended) continue;
      ended = lanes_[l].done[count - 1];
      last = {l, count};
    }
    return all || last.second == 0 ? std::nullopt : std::optional(last);
  }

  /// Two points of streams outside the step's times: an event, and the wait of another stream for it; in this order, or
  /// in the other one, so that the wait is for the event of a step before.
  void join(double at, std::size_t of, std::size_t waiting, bool same_step) {
    const StreamEvent recorded = event(at, Record::Kind::record_event, of, next_),
                      waited = event(at, Record::Kind::wait_event, waiting, next_);
    ++next_;
    result_.order.push_back(same_step ? recorded : waited);
    result_.order.push_back(same_step ? waited : recorded);
  }
  void join_streams() {
    double before = 0.0, next = kNever;  // when the default stream came to the step, and went on behind it
    for (std::size_t g = 0; g < events_.gpu.size(); ++g) {
      if (streams_[g] != lanes_[0].stream) continue;
      if (issued_[g] < window_.begin) before = std::max(before, events_.gpu[g].end);
      if (issued_[g] >= window_.end) next = std::min(next, events_.gpu[g].begin);
    }
    for (std::size_t s = 1; s < lanes_.size(); ++s) {
      if (events_.gpu[lanes_[s].items.front()].begin >= before) join(-kNever, 0, s, true);
      join(kNever, s, 0, lanes_[s].done.back() <= next);
    }
  }

  const ProfilerEvents& events_;
  const std::vector<double>& issued_;
  const std::vector<std::int64_t>& streams_;
  const StepWindow& window_;
  RecordedStreams result_;
  std::vector<Lane> lanes_;
  std::map<std::int64_t, std::size_t> calls_;  ///< of the runtime, by correlation
  std::uint32_t next_ = 0;
};

}  // namespace

RecordedStreams recorded_streams(const ProfilerEvents& events, const std::vector<double>& issued,
                                 const std::vector<std::int64_t>& streams, const StepWindow& window) {
  return StreamReader(events, issued, streams, window).read();
}

}  // namespace ridgeline::trace

// A slow model of a made-up step: it writes every run out and plays one launch behind the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/timeline/timeline.h"
#include "tests/timeline/made_steps.h"

namespace ridgeline::slow_timeline {

/// A launch or an event of the step written out.
struct Written {
  Kind kind = Kind::launch;
  std::uint8_t stream = 0;
  std::size_t event = 0;  ///< among all of the step
  double host = 0.0;      ///< work before the launch call returns, of what lies behind a wait
  double before = 0.0;    ///< work before the host waits
  bool waits = false;
  std::size_t awaited = kNoEvent;  ///< by the host; all that was given where it is none
  std::size_t held = 0, run = 0;   ///< which launch of the program it is, in which run
};

class WrittenStep {
 public:
  WrittenStep(const Parts& parts, const Host& host, bool graph) : host_(host), graph_(graph) {
    if (graph) carry_ = total = host.graph_launch.value();
    const std::size_t begun = records_of(parts.begin), of_run = records_of(parts.run);
    add(parts.begin, 0, kNoEvent);
    for (std::int64_t i = 0; i <= parts.runs; ++i) {
      const std::size_t own = begun + static_cast<std::size_t>(i) * of_run;
      if (i > 1) held_ = run_begin;
      run_ = i > 0 ? static_cast<std::size_t>(i - 1) : 0;
      if (i == 1) run_begin = held_;
      add(parts.run, own, i == 0 ? kNoEvent : own - of_run);
    }
    run_end = held_;
    run_ = 0;
    const std::size_t own = begun + static_cast<std::size_t>(parts.runs + 1) * of_run;
    add(parts.end, own, own - of_run);
    end_group();
    tail.kind = Kind::wait;
    tail.host = carry_;
    events = own + records_of(parts.end);
  }
  std::vector<Written> all;
  Written tail;
  std::size_t events = 0, run_begin = 0, run_end = 0;
  double total = 0.0;

 private:
  void end_group() {
    if (graph_) return;
    const double n = static_cast<double>(group_.size()), call = host_.launch_call.value() * host_.scale;
    // Of a record's cost, its launch calls take the driver's factor.
    cost_ += (host_.parts.launch - 1.0) * std::min(cost_, n * call);
    if (group_.empty()) {
      carry_ += cost_;
      total += cost_;
    } else {
      const double each = std::max(cost_ / (n + 1.0), call * host_.parts.launch),
                   rest = std::max(0.0, cost_ - n * each);
      for (const std::size_t one : group_) all[one].host += each;
      carry_ += rest;
      total += n * each + rest;
    }
    group_.clear();
    cost_ = 0.0;
  }
  void add(const std::vector<Thing>& things, std::size_t own, std::size_t before) {
    for (const Thing& thing : things) {
      const bool of_event = thing.kind == Kind::record_event || thing.kind == Kind::wait_event ||
                            thing.kind == Kind::host_waits_for_event;
      if (of_event && thing.part == Thing::Of::run_before && before == kNoEvent) continue;
      const std::size_t base = thing.part == Thing::Of::begin ? 0 : thing.part == Thing::Of::own ? own : before;
      Written one{thing.kind, thing.stream, base + thing.event};
      if (thing.kind == Kind::host) {
        end_group();
        cost_ = host_.class_costs[static_cast<std::size_t>(thing.host_class)].value() * host_.scale * thing.times;
        continue;
      }
      if (thing.kind == Kind::wait || thing.kind == Kind::host_waits_for_event) {
        end_group();
        waits_ = true;
        before_ = carry_;
        carry_ = graph_ ? host_.graph_launch.value() : 0.0;
        total += carry_;
        awaited_ = thing.kind == Kind::wait ? kNoEvent : one.event;
        continue;
      }
      if (thing.kind == Kind::launch) {
        one.host = carry_;
        carry_ = 0.0;
        one.waits = waits_;
        one.before = before_;
        one.awaited = awaited_;
        waits_ = false;
        before_ = 0.0;
        one.held = held_++;
        one.run = run_;
        group_.push_back(all.size());
      }
      all.push_back(one);
    }
  }
  const Host& host_;
  bool graph_;
  std::vector<std::size_t> group_;
  double cost_ = 0.0, carry_ = 0.0, before_ = 0.0;
  bool waits_ = false;
  std::size_t awaited_ = kNoEvent, held_ = 0, run_ = 0;
};

/// Plays the written-out step again and again, a launch behind the other.
class SlowPlay {
 public:
  struct Span {
    double issued = 0.0, start = 0.0, end = 0.0;
  };
  struct Step {
    double begin = 0.0, host_begin = 0.0, end = 0.0, host = 0.0, starved = 0.0;
    std::vector<Span> spans;  ///< of launches alone
  };
  SlowPlay(const WrittenStep& step, std::size_t streams, bool blocks, const Gpu& gpu)
      : step_(step),
        blocks_(blocks),
        gpu_(gpu),
        ends_(streams),
        ready_(streams),
        starts_(streams),
        events_(step.events) {}

  Step play(const std::vector<double>& durations, const std::vector<double>& gaps, bool queues_all) {
    Step now;
    now.begin = done(0).at;
    now.host_begin = host_;
    for (const Written& one : step_.all) {
      const std::size_t s = one.stream;
      if (one.kind == Kind::record_event) events_[one.event] = done(s);
      if (one.kind == Kind::wait_event && events_[one.event].at > ready_[s].at) ready_[s] = events_[one.event];
      if (one.kind != Kind::launch) continue;
      give(one);
      const std::size_t number = now.spans.size();
      const bool queued = queues_all || number == 0 || one.waits;
      const auto depth = static_cast<std::size_t>(gpu_.launch.queue_depth);
      if (queued && starts_[s].size() >= depth) host_ = std::max(host_, starts_[s][starts_[s].size() - depth]);
      const double free = ends_[s].at + gaps[number], waited_for = ready_[s].at, call = host_ + latency();
      const double start = std::max({free, waited_for, call});
      // A kernel that waits for the host begins what rests on it anew; one that waits for another stream rests on that.
      double given = ends_[s].given;
      if (call > std::max(free, waited_for)) given = start;
      else if (waited_for > free) given = ready_[s].given;
      // Of the default stream's wait, what the host is to blame for: until the work began that it waits for.
      if (s == 0)
        now.starved += waited_for > free ? start - waited_for + std::max(0.0, ready_[s].given - free) : start - free;
      ends_[s] = {start + durations[number], given};
      if (queued) starts_[s].push_back(start);
      now.spans.push_back({host_, start, ends_[s].at});
    }
    give(step_.tail);
    now.end = done(0).at;
    now.host = host_;
    return now;
  }

 private:
  struct Moment {
    double at = 0.0, given = 0.0;
  };
  [[nodiscard]] Moment done(std::size_t stream) const {
    return ends_[stream].at > ready_[stream].at ? ends_[stream] : ready_[stream];
  }
  [[nodiscard]] double latency() const { return gpu_.launch.start_latency.value(); }
  void give(const Written& one) {
    const bool waits = one.waits || blocks_;
    double until = 0.0;
    for (std::size_t s = 0; s < ends_.size(); ++s) until = std::max(until, done(s).at);
    if (one.awaited != kNoEvent && !blocks_) until = events_[one.awaited].at;
    if (!blocks_) host_ += one.before;
    if (waits) host_ = std::max(host_, until + latency());
    if (blocks_) host_ += one.before;
    host_ += one.host;
  }
  const WrittenStep& step_;
  bool blocks_;
  const Gpu& gpu_;
  double host_ = 0.0;
  std::vector<Moment> ends_, ready_;
  std::vector<std::vector<double>> starts_;
  std::vector<Moment> events_;
};

/// Seconds of each span in which no span of a stream before its own runs.
inline std::vector<double> exposed_of(const std::vector<const Written*>& launches,
                                      const std::vector<SlowPlay::Span>& spans) {
  std::vector<double> result;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    std::vector<std::pair<double, double>> left{{spans[i].start, spans[i].end}};
    for (std::size_t k = 0; k < spans.size(); ++k) {
      if (launches[k]->stream >= launches[i]->stream) continue;
      std::vector<std::pair<double, double>> rest;
      for (const auto& [from, to] : left) {
        if (spans[k].start > from) rest.emplace_back(from, std::min(to, spans[k].start));
        if (spans[k].end < to) rest.emplace_back(std::max(from, spans[k].end), to);
      }
      std::erase_if(rest, [](const auto& one) { return one.second <= one.first; });
      left = rest;
    }
    double all = 0.0;
    for (const auto& [from, to] : left) all += to - from;
    result.push_back(all);
  }
  return result;
}

/// Each pair of launches of the program has factors of its own.
class Pairs final : public Contention {
 public:
  [[nodiscard]] double of_kernel(std::size_t kernel, std::size_t collective) const override {
    return 1.05 + 0.02 * static_cast<double>(kernel % 5) + 0.01 * static_cast<double>(collective % 7);
  }
  [[nodiscard]] double of_collective(std::size_t collective, std::size_t kernel) const override {
    return 1.2 + 0.05 * static_cast<double>(kernel % 3) + 0.02 * static_cast<double>(collective % 4);
  }
  [[nodiscard]] Seconds wait_for_room(std::size_t collective, std::size_t kernel, Seconds elapsed) const override {
    return elapsed * (0.02 + 0.01 * static_cast<double>((collective + 2 * kernel) % 3));
  }
};

inline std::vector<double> slowed(const std::vector<const Written*>& launches, const std::vector<SlowPlay::Span>& spans,
                                  const std::vector<double>& alone, const Contention& contention) {
  std::vector<double> result = alone;
  for (std::size_t other = 0; other < spans.size(); ++other)
    for (std::size_t kernel = 0; kernel < spans.size(); ++kernel) {
      if (launches[other]->stream == 0 || launches[kernel]->stream != 0) continue;
      const SlowPlay::Span &a = spans[kernel], &b = spans[other];
      const std::size_t k = launches[kernel]->held, o = launches[other]->held;
      if (a.start < b.start && b.start < a.end)
        result[other] += contention.wait_for_room(o, k, Seconds{b.start - a.start}).value();
      const double beside = std::max(0.0, std::min(a.end, b.end) - std::max(a.start, b.start));
      result[kernel] += beside * (1.0 - 1.0 / contention.of_kernel(k, o));
      result[other] += beside * (1.0 - 1.0 / contention.of_collective(o, k));
    }
  return result;
}

}  // namespace ridgeline::slow_timeline

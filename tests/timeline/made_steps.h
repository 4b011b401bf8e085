// Made-up steps of random things: host work, launches, waits and events on one or more streams, a micro-batch that runs
// several times and that the program holds once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/timeline/timeline.h"
#include "tests/support/draws.h"

namespace ridgeline::slow_timeline {

using testing_support::Draws;
using Kind = Action::Kind;

inline constexpr std::size_t kNoEvent = SIZE_MAX;

/// One thing of a part of the step. Events are named by the part that records them and their number in it.
struct Thing {
  enum class Of : std::uint8_t { begin, own, run_before };
  Kind kind = Kind::host;
  std::uint8_t stream = 0;
  HostClass host_class = HostClass::other;
  std::uint32_t times = 0, launch = 0;
  Of part = Of::own;
  std::size_t event = 0;
};

/// What a step consists of: what comes first, a micro-batch that runs so many times, what comes last.
struct Parts {
  std::vector<Thing> begin, run, end;
  std::int64_t runs = 2;
  std::size_t streams = 0;  ///< 0: the default one alone, without events
  std::vector<KernelLaunch> launches;
  std::vector<KernelTime> times;  ///< beside `launches`
};

class Maker {
 public:
  Maker(Draws& draws, Parts& parts) : draws_(draws), parts_(parts) {}

  std::vector<Thing> part(std::size_t size, bool is_run, std::size_t begun, std::size_t of_run) {
    std::vector<Thing> things;
    std::size_t own = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const double what = draws_.share();
      const bool several = parts_.streams > 0;
      if (what < 0.25) {
        constexpr HostClass kClasses[] = {HostClass::linear, HostClass::pointwise, HostClass::python_fixed};
        things.push_back({Kind::host, 0, kClasses[draws_.index(3)], 1 + static_cast<std::uint32_t>(draws_.index(3))});
      } else if (what < 0.3) {
        things.push_back({Kind::wait});
        things.push_back(launch());
      } else if (several && what < 0.45) {
        things.push_back({Kind::record_event, stream()});
        things.back().event = own++;
      } else if (several && what < 0.65) {
        const std::size_t which = draws_.index(3);
        Thing wait{what < 0.6 ? Kind::wait_event : Kind::host_waits_for_event, stream()};
        if (which == 0 && own > 0) wait.event = draws_.index(own);
        else if (which == 1 && of_run > 0) wait.part = Thing::Of::run_before, wait.event = draws_.index(of_run);
        else if (begun > 0) wait.part = Thing::Of::begin, wait.event = draws_.index(begun);
        else continue;
        things.push_back(wait);
        if (wait.kind == Kind::host_waits_for_event) things.push_back(launch());
      } else {
        things.push_back(launch());
      }
    }
    // A part begins with a record, so that groups of launches end with the part before; a run with a launch on the
    // default stream behind it.
    things.insert(things.begin(), {Kind::host, 0, HostClass::pointwise, 1});
    if (is_run) {
      things.insert(things.begin() + 1, launch());
      things[1].stream = 0;
    }
    return things;
  }
  Thing launch() {
    KernelLaunch made;
    made.grid = {1 + static_cast<std::int64_t>(draws_.index(150)), 1, 1};
    made.work = MemoryBoundWork{};
    made.follows_without_gap = draws_.index(5) == 0;
    KernelTime time;
    time.time = microseconds(draws_.between(0.5, 40));
    time.dram_read_bytes = time.l2_bytes = draws_.between(1e4, 1e6);
    parts_.launches.push_back(made);
    parts_.times.push_back(time);
    Thing thing{Kind::launch, stream()};
    thing.launch = static_cast<std::uint32_t>(parts_.launches.size() - 1);
    return thing;
  }

 private:
  std::uint8_t stream() {
    if (parts_.streams == 0 || draws_.share() < 0.5) return 0;
    return static_cast<std::uint8_t>(draws_.index(parts_.streams));
  }
  Draws& draws_;
  Parts& parts_;
};

inline std::size_t records_of(const std::vector<Thing>& things) {
  return static_cast<std::size_t>(
      std::ranges::count_if(things, [](const Thing& one) { return one.kind == Kind::record_event; }));
}

inline Parts random_parts(Draws& draws) {
  Parts parts;
  parts.streams = draws.index(3) == 0 ? 0 : 2 + draws.index(2);
  Maker maker(draws, parts);
  parts.begin = maker.part(draws.index(8), false, 0, 0);
  const std::size_t begun = records_of(parts.begin);
  parts.run = maker.part(1 + draws.index(10), true, begun, 0);
  // What waits for something of the run before is added where a run records anything.
  const std::size_t of_run = records_of(parts.run);
  for (std::size_t waits = of_run > 0 ? draws.index(4) : 0; waits > 0; --waits) {
    Thing wait{Kind::wait_event, static_cast<std::uint8_t>(draws.index(parts.streams))};
    wait.part = Thing::Of::run_before;
    wait.event = draws.index(of_run);
    std::size_t at = 2 + draws.index(parts.run.size() - 1);
    const Kind before = parts.run[at - 1].kind;
    if (before == Kind::wait || before == Kind::host_waits_for_event) at = 2;  // a launch follows there
    parts.run.insert(parts.run.begin() + static_cast<std::ptrdiff_t>(at), wait);
  }
  parts.end = maker.part(draws.index(8), false, begun, of_run);
  parts.runs = static_cast<std::int64_t>(draws.index(3) == 0 ? 1 + draws.index(4) : 1 + draws.index(30));
  return parts;
}

/// The step as a program holds it: a first run written out, then one that stands for `runs`.
struct Held {
  OpTrace trace;
  StepProgram program;
  std::vector<KernelTime> times;
  std::vector<std::uint32_t> launches;  ///< entry of Parts::launches of each

  explicit Held(const Parts& parts) {
    if (parts.streams > 0) {
      trace.streams.resize(parts.streams);
      program.trace = &trace;
    }
    for (const KernelLaunch& launch : parts.launches) program.launches.push_back(launch);
    const std::size_t begun = records_of(parts.begin), of_run = records_of(parts.run);
    trace.events = static_cast<std::uint32_t>(begun + 2 * of_run + records_of(parts.end));
    add(parts.begin, parts, 0, kNoEvent);
    add(parts.run, parts, begun, kNoEvent);
    const auto first = static_cast<std::uint32_t>(program.actions.size());
    add(parts.run, parts, begun + of_run, begun);
    const auto last = static_cast<std::uint32_t>(program.actions.size());
    add(parts.end, parts, begun + 2 * of_run, begun + of_run);
    program.steps.push_back({0, static_cast<std::uint32_t>(program.actions.size())});
    if (parts.runs > 1) program.repeats.push_back({{first, last}, parts.runs});
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  void add(const std::vector<Thing>& things, const Parts& parts, std::size_t own, std::size_t before) {
    for (const Thing& thing : things) {
      Action action{thing.kind, thing.host_class, thing.stream, thing.times};
      if (thing.kind == Kind::launch) {
        action.index = thing.launch;
        times.push_back(parts.times[thing.launch]);
        launches.push_back(thing.launch);
      } else if (thing.kind != Kind::host && thing.kind != Kind::wait) {
        if (thing.part == Thing::Of::run_before && before == kNoEvent) continue;
        const std::size_t base = thing.part == Thing::Of::begin ? 0 : thing.part == Thing::Of::own ? own : before;
        action.index = static_cast<std::uint32_t>(base + thing.event);
      }
      program.actions.push_back(action);
    }
  }
};

}  // namespace ridgeline::slow_timeline

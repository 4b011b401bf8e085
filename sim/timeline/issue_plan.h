// The steady step as the recurrence runs it: for every launch, the host time before it and the time the kernel takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/hardware/host.h"
#include "sim/program/step_program.h"

namespace ridgeline {

struct Issue {
  static constexpr std::int64_t kEverything = -1;
  double host = 0.0;         ///< seconds of host work up to the return of the launch call
  double gap = 0.0;          ///< seconds the GPU needs between the kernel before and this one
  bool wait_before = false;  ///< the host waits for the GPU first, after `host_before_wait`
  double host_before_wait = 0.0;
  bool queued = true;  ///< takes a place in the launch queue of its own: a graph takes one for all its kernels
  std::uint8_t stream = 0;
  std::int64_t wait_for = kEverything;  ///< of `wait_before`: an event, or all that was issued
  double least_duration = 0.0;          ///< seconds of its stream that a kernel of a CUDA graph takes at least
  /// Seconds of the stream that a kernel of this duration takes without the gap before it.
  [[nodiscard]] double busy_of(double duration) const { return std::max(duration, least_duration); }
};

/// What the host does between two points of the recurrence: one record of work with the launches it makes, or a wait.
struct HostGroup {
  enum class Kind : std::uint8_t { work, wait, graph };
  Kind kind = Kind::work;
  HostClass host_class = HostClass::other;
  std::uint32_t action = 0;        ///< entry of the program's actions it begins with
  std::uint32_t first_launch = 0;  ///< of the steady step
  std::uint32_t launches = 0;
  double share = 0.0;  ///< seconds up to the return of each launch call
  double rest = 0.0;   ///< seconds after the last launch, or all of them without one
};

/// Launches [begin, end) of a step that run `times` times in a row.
struct RepeatedLaunches {
  std::size_t begin = 0, end = 0;
  std::int64_t times = 1;
  [[nodiscard]] std::int64_t times_of(std::size_t launch) const { return launch >= begin && launch < end ? times : 1; }
  /// Launches of the further runs.
  [[nodiscard]] std::size_t further() const { return (end - begin) * static_cast<std::size_t>(times - 1); }
  /// The launch that number `played` is, where all runs are counted one behind another.
  [[nodiscard]] std::size_t held_as(std::size_t played) const {
    if (times <= 1 || played < end) return played;
    return played < end + further() ? begin + (played - begin) % (end - begin) : played - further();
  }
  [[nodiscard]] std::size_t run_of(std::size_t played) const {
    return times <= 1 || played < end || played >= end + further() ? 0 : (played - begin) / (end - begin);
  }
};

/// What streams are given, in the order in which the host gives it.
struct StreamPoint {
  enum class Kind : std::uint8_t {
    launch,        ///< index = entry of `launches`
    record_event,  ///< index = event of `stream`
    wait_event     ///< index = event that `stream` waits for
  };
  Kind kind = Kind::launch;
  std::uint8_t stream = 0;
  std::uint32_t index = 0;
};

struct IssuePlan {
  std::vector<Issue> launches;
  std::vector<StreamPoint> order;  ///< empty where there is one stream
  std::size_t streams = 1, events = 0;
  RepeatedLaunches repeat;
  Issue tail;                     ///< after the last launch; launches nothing
  bool from_waits = false;        ///< times are counted from the last wait: of a generation, whose tokens end with one
  double host_of_tokens = 0.0;    ///< host work of tokens that are not written out, part of host_total()
  std::vector<HostGroup> groups;  ///< the same work, as the host does it in order, where it was asked for
  /// Host work of the whole step, without waiting.
  [[nodiscard]] double host_total() const;
};

/// Of the steady step; of one run where nothing repeats.
RepeatedLaunches repeated_launches(const StepProgram& program);

/// What the host does and issues in the steady step of one stream, which neither its speed nor the GPU's changes:
/// programs of one layout share it.
class IssueOutline {
 public:
  explicit IssueOutline(const StepProgram& program);
  /// A record of host work and the launches up to the next record, or a wait.
  struct Part {
    static constexpr std::uint32_t kWait = UINT32_MAX;
    std::uint32_t kind = kWait;  ///< entry of `kinds`
  };
  /// Parts that cost the same on any host.
  struct Kind {
    HostClass host_class = HostClass::other;
    std::uint32_t times = 0, launches = 0;
    bool operator==(const Kind&) const = default;
  };
  std::vector<Part> parts;
  std::vector<Kind> kinds;
  std::vector<std::uint32_t> launches;  ///< entries of the program's launches, in order
  RepeatedLaunches repeat;
  bool one_stream = true;  ///< else nothing of the above is filled in
};

enum class Groups : bool { none, listed };  ///< IssuePlan::groups

/// The cost of an operation's class is spread over its launches, part of it after the last; a launch costs at least the
/// launch call. `outline`: of this program, where it is known already and no groups are asked for.
IssuePlan plan_issues(const StepProgram& program, const Gpu& gpu, const Host& host, Groups groups = Groups::listed,
                      const IssueOutline* outline = nullptr);
/// Issues of the host for each launch of the second of two tokens: it begins where the first leaves it.
std::vector<Issue> plan_token(const StepProgram& two, const Gpu& gpu, const Host& host);
/// The same step as one CUDA graph (one more for every wait in it). A kernel starts `launch.graph_gap` after the end of
/// its predecessor, and no sooner than `launch.graph_period` after its start.
IssuePlan plan_graph(const StepProgram& program, const Gpu& gpu, const Host& host, Groups groups = Groups::listed);

}  // namespace ridgeline

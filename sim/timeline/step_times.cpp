#include "sim/timeline/step_times.h"

#include <mutex>
#include <span>

#include "sim/timeline/step_launches.h"

namespace ridgeline {
namespace {

/// The launches of a step that were timed: of each kind of launch those that found different shares in the L2, few
/// each.
class TimedLaunches {
 public:
  TimedLaunches(std::size_t kinds, std::size_t launches) : last_(kinds, kNone) { timed_.reserve(launches); }
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// One of the same kind that found the same; kNone where `launch` is the first, which is kept.
  std::uint32_t same_as(std::uint32_t kind, std::uint64_t residency, std::uint32_t launch) {
    for (std::uint32_t at = last_[kind]; at != kNone; at = timed_[at].before)
      if (timed_[at].residency == residency) return timed_[at].launch;
    timed_.push_back({residency, launch, last_[kind]});
    last_[kind] = static_cast<std::uint32_t>(timed_.size() - 1);
    return kNone;
  }

 private:
  struct Timed {
    std::uint64_t residency;  ///< of the quantised hit shares
    std::uint32_t launch, before;
  };
  std::vector<std::uint32_t> last_;  ///< entry of `timed_` by kind
  std::vector<Timed> timed_;
};

}  // namespace

std::optional<KernelTime> KernelTimes::find(std::uint64_t launch, std::uint64_t residency) const {
  const std::shared_lock lock(mutex_);
  const auto found = times_.find({launch, residency});
  return found != times_.end() ? std::optional(found->second) : std::nullopt;
}

void KernelTimes::keep(std::uint64_t launch, std::uint64_t residency, const KernelTime& time) {
  const std::unique_lock lock(mutex_);
  if (times_.size() >= most_) times_.clear();
  times_.try_emplace({launch, residency}, time);
}

std::vector<KernelTime> time_kernels(const StepProgram& program, const TimingEngine& engine, const Gpu& gpu,
                                     KernelTimes* shared, const CollectiveTimer& collectives,
                                     const StepResidency* residency) {
  std::vector<KernelTime> times;
  const auto collective_of = [&](const Action& action) -> const Collective* {
    if (!collectives || action.call == Action::kNoCall) return nullptr;
    return std::get_if<Collective>(&program.trace->ops[program.trace->calls[action.call].op]);
  };
  if (const std::unique_ptr<TimingRun> run = engine.start_run()) {
    const auto next = [&](const Action& action) {
      return run->next(program.launches[action.index], program.operands_of(action.call));
    };
    FurtherRuns further(program, gpu.l2);
    for (const Action* action : launches_before(program)) next(*action);
    for (const Action& action : program.steady_step()) {
      if (further.begin_at(action))
        further.visit(
            [&](const KernelLaunch& launch, std::span<const Operand> operands) { run->next(launch, operands); });
      if (action.kind != Action::Kind::launch) continue;
      const Collective* collective = collective_of(action);
      times.push_back(collective != nullptr ? collectives(*collective) : next(action));
    }
    return times;
  }
  StepResidency own;
  if (residency == nullptr) residency = &(own = residency_of_step(program, gpu.l2));
  TimedLaunches timed(program.launches.size(), residency->packed.size());
  const auto time_of = [&](std::uint32_t index, std::size_t launch) {
    const std::uint64_t packed = residency->packed[launch];
    if (shared == nullptr || program.launch_numbers.empty())
      return engine.time(program.launches[index], residency->of(launch));
    const std::uint64_t number = program.launch_numbers[index];
    if (const auto time = shared->find(number, packed)) return *time;
    const KernelTime time = engine.time(program.launches[index], residency->of(launch));
    shared->keep(number, packed, time);
    return time;
  };
  times.reserve(residency->packed.size());
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const std::size_t launch = times.size();
    if (const Collective* collective = collective_of(action)) {
      times.push_back(collectives(*collective));
      continue;
    }
    const std::uint32_t same =
        timed.same_as(action.index, residency->packed[launch], static_cast<std::uint32_t>(launch));
    times.push_back(same == TimedLaunches::kNone ? time_of(action.index, launch) : times[same]);
  }
  return times;
}

}  // namespace ridgeline

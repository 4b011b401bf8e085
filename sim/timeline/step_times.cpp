#include "sim/timeline/step_times.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>

#include "sim/timeline/step_launches.h"
#include "sim/timeline/token_launches.h"
#include "sim/timeline/token_times.h"
#include "sim/units/budget.h"

namespace ridgeline {
namespace {

/// The launches of a step that were timed: of each kind of launch those that found different shares in the L2, few
/// each.
class TimedLaunches {
 public:
  explicit TimedLaunches(std::size_t kinds) : last_(kinds, kNone) {}
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// The time of one of the same kind that found the same; kNone where this is the first, whose time will be `next`.
  std::uint32_t same_as(std::uint32_t kind, std::uint64_t residency, std::size_t next) {
    for (std::uint32_t at = last_[kind]; at != kNone; at = timed_[at].before)
      if (timed_[at].residency == residency) return timed_[at].time;
    timed_.push_back({residency, static_cast<std::uint32_t>(next), last_[kind]});
    last_[kind] = static_cast<std::uint32_t>(timed_.size() - 1);
    return kNone;
  }

 private:
  struct Timed {
    std::uint64_t residency;  ///< of the quantised hit shares
    std::uint32_t time, before;
  };
  std::vector<std::uint32_t> last_;  ///< entry of `timed_` by kind
  std::vector<Timed> timed_;
};

}  // namespace

std::size_t KernelTimes::place_of(std::uint64_t launch, std::uint64_t residency) const {
  const std::uint64_t hash = (residency * 0x9e3779b97f4a7c15u ^ launch) * 0xff51afd7ed558ccdu;
  const std::size_t last = entries_.size() - 1;
  std::size_t place = (hash ^ hash >> 32) & last;
  const auto is_other = [&](const Entry& entry) {
    return entry.time != Entry::kEmpty && (entry.launch != launch || entry.residency != residency);
  };
  while (is_other(entries_[place])) place = (place + 1) & last;
  return place;
}

void KernelTimes::grow() {
  constexpr std::size_t kFirst = 1024;  // twice those of a step
  keep_budget_for(2 * entries_.size() * sizeof(Entry), "timing kernels");
  const std::vector<Entry> before = std::exchange(entries_, std::vector<Entry>(std::max(kFirst, 2 * entries_.size())));
  for (const Entry& entry : before)
    if (entry.time != Entry::kEmpty) entries_[place_of(entry.launch, entry.residency)] = entry;
}

std::optional<KernelTime> KernelTimes::find(std::uint64_t launch, std::uint64_t residency) const {
  const std::shared_lock lock(mutex_);
  if (entries_.empty()) return std::nullopt;
  const std::uint32_t time = entries_[place_of(launch, residency)].time;
  return time != Entry::kEmpty ? std::optional(times_[time]) : std::nullopt;
}

void KernelTimes::keep(std::uint64_t launch, std::uint64_t residency, const KernelTime& time) {
  const std::unique_lock lock(mutex_);
  if (times_.size() >= most_) {
    entries_.clear();
    times_.clear();
  }
  keep_budget_to_grow(times_, "timing kernels");
  if (2 * times_.size() >= entries_.size()) grow();
  Entry& entry = entries_[place_of(launch, residency)];
  if (entry.time != Entry::kEmpty) return;
  entry = {launch, residency, static_cast<std::uint32_t>(times_.size())};
  times_.push_back(time);
}

namespace {
void add_tokens(StepTimes& times, const StepProgram& program, const TimingEngine& engine, const L2Spec& l2) {
  TokenTimes tokens = time_tokens(program, engine, l2);
  const auto before = static_cast<std::uint32_t>(times.different.size());
  for (const TokenTimes::Launch& launch : tokens.launches) times.of_launch.push_back(before + launch.time);
  for (KernelTime& time : tokens.times) times.different.push_back(std::move(time));
  tokens.times = {};
  times.tokens = std::make_shared<const TokenTimes>(std::move(tokens));
}
}  // namespace

std::vector<KernelTime> StepTimes::listed() const {
  std::vector<KernelTime> times;
  keep_budget_for(size() * sizeof(KernelTime), "timing kernels");
  times.reserve(size());
  for (const std::uint32_t time : of_launch) {
    keep_budget_often("timing kernels");
    times.push_back(different[time]);
  }
  return times;
}

StepTimes time_step(const StepProgram& program, const TimingEngine& engine, const Gpu& gpu, KernelTimes* shared,
                    const CollectiveTimer& collectives, const StepResidency* residency) {
  StepTimes times;
  const auto add = [&](KernelTime time) {
    times.of_launch.push_back(static_cast<std::uint32_t>(times.different.size()));
    keep_budget_to_grow(times.different, "timing kernels");
    times.different.push_back(std::move(time));
  };
  const auto collective_of = [&](const Action& action) -> const Collective* {
    if (!collectives || action.call == Action::kNoCall) return nullptr;
    return std::get_if<Collective>(&program.trace->ops[program.trace->calls[action.call].op]);
  };
  if (const std::unique_ptr<TimingRun> run = engine.start_run()) {
    if (program.token_kernels != nullptr) throw std::logic_error("an engine with caches of its own runs every token");
    const auto next = [&](const Action& action) {
      keep_budget("simulating kernels");
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
      add(collective != nullptr ? collectives(*collective) : next(action));
    }
    return times;
  }
  StepResidency own;
  if (residency == nullptr)
    residency = &(own = program.token_kernels != nullptr ? residency_before_tokens(program, gpu.l2)
                                                         : residency_of_step(program, gpu.l2));
  TimedLaunches timed(program.launches.size());
  const auto time_of = [&](std::uint32_t index, std::size_t launch) {
    keep_budget_often("timing kernels");
    const std::uint64_t packed = residency->packed[launch];
    if (shared == nullptr || program.launch_numbers.empty())
      return engine.time(program.launches[index], residency->of(launch));
    const std::uint64_t number = program.launch_numbers[index];
    if (const auto time = shared->find(number, packed)) return *time;
    const KernelTime time = engine.time(program.launches[index], residency->of(launch));
    shared->keep(number, packed, time);
    return time;
  };
  std::vector<std::uint32_t> of_collective(program.launches.size(), TimedLaunches::kNone);
  times.of_launch.reserve(residency->packed.size());
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const std::size_t launch = times.size();
    if (const Collective* collective = collective_of(action)) {
      std::uint32_t& known = of_collective[action.index];
      if (known != TimedLaunches::kNone) {
        times.of_launch.push_back(known);
        continue;
      }
      known = static_cast<std::uint32_t>(times.different.size());
      add(collectives(*collective));
      continue;
    }
    const std::uint32_t same = timed.same_as(action.index, residency->packed[launch], times.different.size());
    if (same == TimedLaunches::kNone) add(time_of(action.index, launch));
    else times.of_launch.push_back(same);
  }
  if (program.token_kernels != nullptr) add_tokens(times, program, engine, gpu.l2);
  return times;
}

std::vector<KernelTime> time_kernels(const StepProgram& program, const TimingEngine& engine, const Gpu& gpu,
                                     KernelTimes* shared, const CollectiveTimer& collectives,
                                     const StepResidency* residency) {
  return time_step(program, engine, gpu, shared, collectives, residency).listed();
}

}  // namespace ridgeline

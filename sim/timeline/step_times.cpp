#include "sim/timeline/step_times.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <span>
#include <unordered_map>

#include "sim/timing/l2_residency.h"

namespace ridgeline {
namespace {

constexpr double kResidencySteps = 32.0;
/// Launches before the step whose traces the L2 may still hold: some hundred move far more than any L2 has.
constexpr std::size_t kWarmUpLaunches = 256;

struct Key {
  std::uint32_t launch = 0;
  std::uint64_t residency = 0;  ///< of the quantised hit shares
  bool operator==(const Key&) const = default;
};
struct HashKey {
  std::size_t operator()(const Key& key) const { return (key.residency ^ key.launch) * 0x9e3779b97f4a7c15u >> 7; }
};

/// Rounds the shares and packs them; more than ten are folded.
std::uint64_t quantise(std::vector<double>& shares) {
  std::uint64_t packed = shares.size();
  for (double& share : shares) {
    const double steps = std::round(share * kResidencySteps);
    share = steps / kResidencySteps;
    packed = packed * 0x100000001b3u + static_cast<std::uint64_t>(steps) + 1;
  }
  return packed;
}

/// The launches before the steady step that end closest to it; the step itself where there is none before it.
std::vector<const Action*> launches_before(const StepProgram& program) {
  const auto step = program.steady_step();
  const auto begin = static_cast<std::size_t>(step.data() - program.actions.data());
  std::vector<const Action*> launches;
  const bool first = program.steps.size() < 2;
  for (std::size_t i = first ? begin + step.size() : begin;
       i-- > (first ? begin : 0) && launches.size() < kWarmUpLaunches;) {
    if (program.actions[i].kind == Action::Kind::launch) launches.push_back(&program.actions[i]);
  }
  std::reverse(launches.begin(), launches.end());
  return launches;
}

/// Further runs of what the steady step holds once: each on storages of its own, as written out. What lay in the L2
/// before all of them is gone after some, so that no more are run.
class FurtherRuns {
 public:
  FurtherRuns(const StepProgram& program, const L2Spec& l2)
      : program_(program), repeat_(program.repeat_of_steady_step()) {
    double bytes = 0.0;
    for (std::uint32_t i = repeat_.actions.begin; i < repeat_.actions.end; ++i) {
      const Action& action = program.actions[i];
      if (action.kind != Action::Kind::allocate) continue;
      own_.emplace(action.index, static_cast<StorageId>(own_.size()));
      bytes += static_cast<double>(program.storages[action.index].bytes);
    }
    const double enough = std::ceil(kGone * l2.capacity.value() / std::max(1.0, bytes)) + 1.0;
    runs_ = static_cast<std::int64_t>(std::min(static_cast<double>(repeat_.times - 1), enough));
  }

  /// They follow the action before this one.
  [[nodiscard]] bool begin_at(const Action& action) const {
    return runs_ > 0 && static_cast<std::uint32_t>(&action - program_.actions.data()) == repeat_.actions.end;
  }
  /// Calls `visit(launch, operands)` for each launch of each.
  template <typename Visit>
  void visit(Visit visit) {
    std::vector<Operand> operands;
    auto fresh = static_cast<StorageId>(program_.storages.size());
    for (; runs_ > 0; --runs_) {
      for (std::uint32_t i = repeat_.actions.begin; i < repeat_.actions.end; ++i) {
        const Action& action = program_.actions[i];
        if (action.kind != Action::Kind::launch) continue;
        const std::span<const Operand> held = program_.operands_of(action.call);
        operands.assign(held.begin(), held.end());
        for (Operand& operand : operands)
          if (const auto own = own_.find(operand.storage); own != own_.end()) operand.storage = fresh + own->second;
        visit(program_.launches[action.index], operands);
      }
      fresh += static_cast<StorageId>(own_.size());
    }
  }

 private:
  static constexpr double kGone = 4.0;  // times the capacity; what was written outlives what was read by some of it

  const StepProgram& program_;
  RepeatedActions repeat_;
  std::unordered_map<StorageId, StorageId> own_;  ///< born in each run, counted up
  std::int64_t runs_ = 0;
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
                                     KernelTimes* shared, const CollectiveTimer& collectives) {
  std::vector<KernelTime> times;
  FurtherRuns further(program, gpu.l2);
  const auto collective_of = [&](const Action& action) -> const Collective* {
    if (!collectives || action.call == Action::kNoCall) return nullptr;
    return std::get_if<Collective>(&program.trace->ops[program.trace->calls[action.call].op]);
  };
  if (const std::unique_ptr<TimingRun> run = engine.start_run()) {
    const auto next = [&](const Action& action) {
      return run->next(program.launches[action.index], program.operands_of(action.call));
    };
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
  L2Residency l2(gpu.l2);
  std::vector<double> shares;
  for (const Action* action : launches_before(program))
    l2.visit(program.launches[action->index], program.operands_of(action->call), shares);

  std::unordered_map<Key, KernelTime, HashKey> known;
  const auto time_of = [&](std::uint32_t index, std::uint64_t residency) {
    if (shared == nullptr || program.launch_numbers.empty()) return engine.time(program.launches[index], shares);
    const std::uint64_t number = program.launch_numbers[index];
    if (const auto time = shared->find(number, residency)) return *time;
    const KernelTime time = engine.time(program.launches[index], shares);
    shared->keep(number, residency, time);
    return time;
  };
  for (const Action& action : program.steady_step()) {
    if (further.begin_at(action))
      further.visit(
          [&](const KernelLaunch& launch, std::span<const Operand> operands) { l2.visit(launch, operands, shares); });
    if (action.kind != Action::Kind::launch) continue;
    const KernelLaunch& launch = program.launches[action.index];
    l2.visit(launch, program.operands_of(action.call), shares);
    if (const Collective* collective = collective_of(action)) {
      times.push_back(collectives(*collective));
      continue;
    }
    const std::uint64_t residency = quantise(shares);
    const auto [it, is_new] = known.try_emplace({action.index, residency});
    if (is_new) it->second = time_of(action.index, residency);
    times.push_back(it->second);
  }
  return times;
}

}  // namespace ridgeline

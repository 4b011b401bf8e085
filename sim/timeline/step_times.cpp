#include "sim/timeline/step_times.h"

#include <algorithm>
#include <cmath>
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

}  // namespace

std::vector<KernelTime> time_kernels(const StepProgram& program, const TimingEngine& engine, const Gpu& gpu) {
  std::vector<KernelTime> times;
  if (const std::unique_ptr<TimingRun> run = engine.start_run()) {
    const auto next = [&](const Action& action) {
      return run->next(program.launches[action.index], program.operands_of(action.call));
    };
    for (const Action* action : launches_before(program)) next(*action);
    for (const Action& action : program.steady_step())
      if (action.kind == Action::Kind::launch) times.push_back(next(action));
    return times;
  }
  L2Residency l2(gpu.l2);
  std::vector<double> shares;
  for (const Action* action : launches_before(program))
    l2.visit(program.launches[action->index], program.operands_of(action->call), shares);

  std::unordered_map<Key, KernelTime, HashKey> known;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const KernelLaunch& launch = program.launches[action.index];
    l2.visit(launch, program.operands_of(action.call), shares);
    const std::uint64_t residency = quantise(shares);
    const auto [it, is_new] = known.try_emplace({action.index, residency});
    if (is_new) it->second = engine.time(launch, shares);
    times.push_back(it->second);
  }
  return times;
}

}  // namespace ridgeline

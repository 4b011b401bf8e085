#include "sim/timeline/step_residency.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/timeline/step_launches.h"
#include "sim/timing/l2_residency.h"

namespace ridgeline {
namespace {

constexpr double kResidencySteps = 32.0;

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

class Hash {
 public:
  void add(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15u;
    hash_ ^= hash_ >> 29;
  }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  void add(const KernelLaunch& launch) {
    for (const auto* accesses : {&launch.reads, &launch.writes}) {
      add(static_cast<std::uint64_t>(accesses->size()));
      for (const Access& access : *accesses) {
        add(static_cast<std::uint64_t>(access.operand) << 32 ^ static_cast<std::uint32_t>(access.list));
        add(access.from), add(access.to), add(access.bytes);
      }
    }
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0;
};

}  // namespace

StepResidency residency_of_step(const StepProgram& program, const L2Spec& l2) {
  StepResidency result;
  L2Residency held(l2);
  FurtherRuns further(program, l2);
  std::vector<double> shares;
  const std::vector<const Action*> before = launches_before(program);
  // From the last launch after which nothing is left of those in front of it.
  const auto last = std::find_if(before.rbegin(), before.rend(), [&](const Action* action) {
    return held.forgets_before(program.launches[action->index], program.operands_of(action->call));
  });
  const std::size_t first = last == before.rend() ? 0 : static_cast<std::size_t>(before.rend() - last) - 1;
  const std::span<const Action> step = program.steady_step();
  const auto launches = static_cast<std::size_t>(std::count_if(
      step.begin(), step.end(), [](const Action& action) { return action.kind == Action::Kind::launch; }));
  held.reserve(before.size() + launches, program.storages.size());
  result.packed.reserve(launches);
  result.begin.reserve(launches + 1);
  held.pass_over(first);
  for (const Action* action : std::span(before).subspan(first))
    held.visit(program.launches[action->index], program.operands_of(action->call), shares);
  for (const Action& action : step) {
    if (further.begin_at(action))
      further.visit(
          [&](const KernelLaunch& launch, std::span<const Operand> operands) { held.visit(launch, operands, shares); });
    if (action.kind != Action::Kind::launch) continue;
    held.visit(program.launches[action.index], program.operands_of(action.call), shares);
    result.packed.push_back(quantise(shares));
    result.begin.push_back(static_cast<std::uint32_t>(result.shares.size()));
    result.shares.insert(result.shares.end(), shares.begin(), shares.end());
  }
  result.begin.push_back(static_cast<std::uint32_t>(result.shares.size()));
  return result;
}

std::uint64_t sequence_of_launches(const StepProgram& program) {
  Hash all;
  const auto add = [&](const Action& action) {
    all.add(static_cast<std::uint64_t>(action.index));
    all.add(static_cast<std::uint64_t>(action.call));
  };
  for (const Action* action : launches_before(program)) add(*action);
  for (const Action& action : program.steady_step())
    if (action.kind == Action::Kind::launch) add(action);
  const RepeatedActions repeat = program.repeat_of_steady_step();
  all.add(static_cast<std::uint64_t>(repeat.times));
  if (repeat.times > 1)
    for (std::uint32_t i = repeat.actions.begin; i < repeat.actions.end; ++i) {
      const Action& action = program.actions[i];
      all.add(static_cast<std::uint64_t>(action.kind));
      if (action.kind == Action::Kind::allocate) all.add(static_cast<std::uint64_t>(action.index));
      if (action.kind == Action::Kind::allocate)
        all.add(static_cast<std::uint64_t>(program.storages[action.index].bytes));
    }
  return all.value();
}

ResidencyKey residency_key(const StepProgram& program, const L2Spec& l2) {
  return residency_key(program, l2, sequence_of_launches(program));
}

ResidencyKey residency_key(const StepProgram& program, const L2Spec& l2, std::uint64_t sequence) {
  Hash all;
  all.add(sequence);
  all.add(static_cast<std::uint64_t>(program.launches.size()));
  for (const KernelLaunch& launch : program.launches) all.add(launch);
  return {all.value(), l2.capacity.value(), l2.resident_full, l2.resident_none};
}

}  // namespace ridgeline

// Launches of a run that decide what the L2 holds in the steady step: those before it, and the further runs of what it
// holds once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/program/step_program.h"

namespace ridgeline {

/// Launches before the step whose traces the L2 may still hold: some hundred move far more than any L2 has.
inline constexpr std::size_t kWarmUpLaunches = 256;

/// The launches before the steady step that end closest to it, some hundred at most; the step itself where there is
/// none before it.
std::vector<const Action*> launches_before(const StepProgram& program);

/// Further runs of what the steady step holds once: each on storages of its own, as written out. What lay in the L2
/// before all of them is gone after some, so that no more are run.
class FurtherRuns {
 public:
  FurtherRuns(const StepProgram& program, const L2Spec& l2);

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
  const StepProgram& program_;
  RepeatedActions repeat_;
  std::unordered_map<StorageId, StorageId> own_;  ///< born in each run, counted up
  std::int64_t runs_ = 0;
};

}  // namespace ridgeline

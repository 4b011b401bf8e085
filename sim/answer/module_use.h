// What each module of a network costs: kernels' time by phase, and what of the memory at the peak is its.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/memory/memory_run.h"
#include "sim/units/quantity.h"

namespace ridgeline {

inline constexpr std::size_t kPhases = 6;

/// A module with all that is in it.
struct ModuleUse {
  std::string name;          ///< without those around it: "attention"
  std::uint32_t parent = 0;  ///< entry of the list
  std::int64_t kernels = 0;  ///< kernels, memsets and copies of a step
  std::array<Seconds, kPhases> time_by_phase;
  std::int64_t bytes_at_peak = 0;  ///< weights, gradients and states too; 0 where it was not asked for

  [[nodiscard]] Seconds time() const;
};

/// One entry a module, parents before children; the first is the whole step. Empty where a trace names no modules.
using ModuleUses = std::vector<ModuleUse>;

/// The modules of a trace, still without use.
ModuleUses modules_of(const OpTrace& trace);
/// Adds what the modules hold at the peak. `result` of run_memory with record_samples.
void add_memory(ModuleUses& uses, const StepProgram& program, const MemoryResult& result);
/// Adds to each module what its children have.
void add_up_children(ModuleUses& uses);
/// "layers.7.attention"; nothing for the whole step.
std::string path_of(const ModuleUses& uses, std::size_t module);

}  // namespace ridgeline
